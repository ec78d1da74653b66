"""Command-line interface: commands, options, console output, logs, error codes, reference pages.

Modules of a command with a package of its own carry its subject in their names.

It may import every other package.
"""
