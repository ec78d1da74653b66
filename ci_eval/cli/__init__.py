"""Command-line interface: commands, options, console output, logs, exit codes, reference pages.

It may import every other package.
"""
