"""The statistics behind a verdict: intervals, tests and corrections, on plain numbers.

Imports `records`.
"""
