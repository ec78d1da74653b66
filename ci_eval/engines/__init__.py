"""Engines: where trials are run, one module each.

What they share is private: which files are copied.

Imports `plugins` and below, and no other plugin package.
"""
