"""Evalset formats, one per module.

Shared parts are private modules: entries of cases, tables, and reading with limits.

Imports `formats` and below, and no other plugin package.
"""
