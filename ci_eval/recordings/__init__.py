"""Formats of recorded conversations, one per module.

Most of them are traces, so the readers of spans are here, too.

Imports `formats` and below, and no other plugin package.
"""
