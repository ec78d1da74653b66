"""Statistics behind a verdict: intervals, tests and corrections, independent of runs.

Imports `records`.
"""
