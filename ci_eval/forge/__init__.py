"""GitHub and GitLab: clients for their APIs, and the commit and job of a run.

Imports `runtime` and below.
"""
