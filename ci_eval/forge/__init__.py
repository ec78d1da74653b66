"""GitHub, GitLab, git remotes: clients for their APIs, the job of a run, its commit's lineage.

Imports `runtime` and below.
"""
