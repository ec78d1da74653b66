"""Records that pass between stages: cases, trials, results, findings.

With the errors that all stages raise, and the bounds of numbers in files.

Imports nothing else of ci-eval.
"""
