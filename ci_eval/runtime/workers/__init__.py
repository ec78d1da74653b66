"""User code, run in separate processes under the interpreter with its dependencies.

Both ends of the connection are here, and what runs before an agent or in place of its tools.
"""
