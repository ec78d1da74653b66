"""The machine under a run: its context, isolated processes, environments, git, paths, HTTP.

Imports `run_files`, `text` and below.
"""
