"""File and message formats of other tools, used by file readers and agents.

Imports `plugins` and below.
"""
