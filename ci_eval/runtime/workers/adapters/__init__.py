"""Framework adapters (`…_adapter`): files that `worker.py` runs under the agent's interpreter.

Each has a function `adapted(target, options, load)`, which finds `target` as the framework's own
tools do and returns a callable that answers messages.  They need the framework from the agent's
environment, imported only when called, and nothing from ci-eval.
"""
