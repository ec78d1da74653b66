"""Documents that a report is rendered to: one module for each.

Imports `run_files` and below, and no other plugin package.
"""
