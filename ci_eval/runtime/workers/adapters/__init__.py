"""What knows frameworks: files that `worker.py` runs under the agent's interpreter.

Each has one function, `adapted(target, options, load)`: it finds `target` as the framework's own
tools find it, and returns what answers a message.  They need the framework, of the agent's
environment, and nothing of ci-eval; they import it when they are called, never before.
"""
