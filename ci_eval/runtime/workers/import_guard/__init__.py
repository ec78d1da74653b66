"""Import guard: a `sitecustomize` that Python imports when a process of the base arm starts.

It imports nothing from ci-eval.
"""
