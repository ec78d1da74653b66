"""The command line: each command and its options, console output, exit codes, reference pages.

It may import every other package.
"""
