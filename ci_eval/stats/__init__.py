"""Pure statistics behind a verdict: intervals, tests and corrections of plain numbers.

Imports `records`.
"""
