"""Files that ci-eval writes and reads again: runs, traces, reports, scores as columns, badges.

Imports `text` and below.
"""
