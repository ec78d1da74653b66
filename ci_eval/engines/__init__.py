"""Engines: where trials run, one module each.

Their shared module, which selects the files to copy, is private.

Imports `plugins` and below, and no other plugin package.
"""
