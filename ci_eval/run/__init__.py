"""The pipeline: plans trials, executes them with all participants, scores and collects results.

Imports `gate`, `config` and below.
"""
