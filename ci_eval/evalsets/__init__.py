"""Evalset formats, one per module.

Imports `formats` and below, and no other plugin package.
"""
