"""Command-line interface: commands, options, console output, logs, error codes, reference pages.

Each command is a module that ends with `_command`; the larger ones have packages of their own.

It may import every other package.
"""
