"""Statistics that a verdict rests on: intervals, tests and corrections, without knowledge of runs.

Imports `records`.
"""
