"""Command-line interface: commands, options, console output, exit codes, reference pages.

It may import every other package.
"""
