"""Documents rendered from a report, one module each: pages, comments, issues, annotations.

The lines about cases for the terminal are here, too.  Private modules prepare parts: rows, cases,
outcomes of trials, charts, times, the reasons of a verdict, and the evidence of scores and judges.

Imports `run_files` and below, and no other plugin package.
"""
