"""Import guard: a `sitecustomize` for processes of the base arm, which Python imports at its start.

It imports nothing of ci-eval.
"""
