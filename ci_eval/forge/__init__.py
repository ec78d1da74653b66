"""GitHub and GitLab: their REST APIs, and the commits and jobs that a run belongs to.

Imports `runtime` and below.
"""
