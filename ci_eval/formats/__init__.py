"""File and message formats of other tools, shared by readers of files and by agents.

Imports `plugins` and below.
"""
