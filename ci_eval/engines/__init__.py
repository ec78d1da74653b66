"""Engines: where trials are run, one module each.

Imports `plugins` and below, and no other plugin package.
"""
