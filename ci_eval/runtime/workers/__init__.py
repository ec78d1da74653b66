"""User code, run in separate processes under the interpreter with its dependencies.

This package holds both ends of the connection, and the code that runs before an agent, marks its
model calls or replaces its tools.
"""
