"""Records that pass between stages: cases, trials, results, findings.

With what their values mean (scenarios of simulated users and their settings, reasons for a finish,
questions to models, usage and versions of models), the errors that all stages raise, and bounds of
numbers.

Imports nothing else of ci-eval.
"""
