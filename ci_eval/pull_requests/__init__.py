"""Posting to GitHub and GitLab: comments, check runs, issues, and the reports of forks.

To the GitHub runner it hands the job summary, the annotations and the outputs of the step.  The
texts of all these come from `reporters`.

Imports `config` and below.
"""
