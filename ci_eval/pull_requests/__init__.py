"""Posting to GitHub and GitLab: comments, check runs, issues, and the reports of forks.

A comment is one for a suite: options, layout and sections are here, and what is posted if a run
left no report; the text of a section comes from `reporters`.  To the GitHub runner it hands the job
summary, annotations and outputs.

Imports `config` and below.
"""
