"""Records that pass between stages, the errors that all stages raise, and the bounds of both.

Imports nothing else of ci-eval.
"""
