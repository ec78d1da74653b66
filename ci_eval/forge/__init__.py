"""GitHub, GitLab and git remotes: API clients, the CI job of a run, the lineage of its commit.

Imports `runtime` and below.
"""
