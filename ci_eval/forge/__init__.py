"""GitHub and GitLab: clients for their APIs, the job of a run, and the lineage of its commit.

Imports `runtime` and below.
"""
