"""The machine under a run: context, isolated processes, environments, git, paths, HTTP, retries.

Imports `run_files`, `text` and below.
"""
