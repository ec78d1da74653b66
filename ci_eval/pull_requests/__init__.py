"""Posting to GitHub and GitLab: comments, check runs, issues, and the reports of forks.

Each suite has one comment.  Its layout is here, and the notice about a run that left no report;
`reporters` renders the text.  The job summary, annotations and outputs are passed to the GitHub
runner.

Imports `config` and below.
"""
