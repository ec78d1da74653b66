"""Records that pass between stages: cases, trials, results, comparisons, findings.

Also the meaning of their values (settings of simulated users, finish reasons, questions to models,
usage and versions of models), the errors that all stages raise, and bounds of numbers.

Imports nothing else of ci-eval.
"""
