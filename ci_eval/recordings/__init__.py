"""Formats of recorded conversations: one module for each.

Imports `formats` and below, and no other plugin package.
"""
