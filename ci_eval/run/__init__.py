"""The pipeline: plans, executes trials with all participants, scores, collects, writes the report.

Imports `gate`, `config` and below.
"""
