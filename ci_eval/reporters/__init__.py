"""Documents rendered from a report, one module each.

Imports `run_files` and below, and no other plugin package.
"""
