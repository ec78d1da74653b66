"""Posting to GitHub and GitLab: comments, check runs, issues, and the reports of forks.

Each suite has one comment.  Its options, layout and sections are here, and the notice about a run
that left no report; the text of a section comes from `reporters`.  The job summary, annotations and
outputs are passed to the GitHub runner.

Imports `config` and below.
"""
