"""Formats of recorded conversations, one per module.

Imports `formats` and below, and no other plugin package.
"""
