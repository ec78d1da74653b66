"""The pipeline: plans, executes trials with all participants, scores, collects, writes the report.

Here are also the choices that belong to one run: its baseline, its metadata, its further rounds.

Imports `gate`, `config` and below.
"""
