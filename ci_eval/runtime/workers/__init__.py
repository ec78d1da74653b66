"""User code, run in separate processes under the interpreter with its dependencies."""
