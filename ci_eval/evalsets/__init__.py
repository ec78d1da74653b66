"""Evalset formats, one per module.

What they share is private: the entries of cases, tables, and reading with limits.

Imports `formats` and below, and no other plugin package.
"""
