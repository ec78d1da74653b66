"""Records that pass between stages: cases, trials, results, findings.

With what their values mean (scenarios of simulated users, reasons for a finish, questions to
models), the errors that all stages raise, and the bounds of numbers in files.

Imports nothing else of ci-eval.
"""
