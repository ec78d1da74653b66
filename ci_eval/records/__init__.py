"""Records that pass between stages: cases, trials, results, findings; and what their values mean.

With the errors that all stages raise, and the bounds of numbers in files.

Imports nothing else of ci-eval.
"""
