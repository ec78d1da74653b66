"""The pipeline: plans trials, executes them, scores their traces and collects the run.

Imports `gate`, `config` and below.
"""
