"""Documents rendered from a report, one module each: pages, comments, issues, JUnit, annotations.

The lines about cases for the console are here, too.  Private modules prepare parts: rows, cases,
outcomes of trials, charts, times, the reasons of a verdict, and the evidence of scores and judges.

Imports `run_files` and below, and no other plugin package.
"""
