"""User code, run in separate processes under the interpreter with its dependencies.

Both ends of the connection are here, and what runs before an agent, marks its calls of models or
stands in place of its tools.
"""
