"""Command-line interface: commands from their options to their console output, logs, error codes.

Each command is a module that ends with `_command`; the larger ones have packages of their own.
Here are also what the GitHub Action runs, and the pages of reference.

It may import every other package.
"""
