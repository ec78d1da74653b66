"""The environment of a run: context, worker processes, isolation, git, paths, HTTP, storage.

The waiting times of all retries are here, and the sandboxed process that renders user templates.

Imports `run_files`, `text` and below.
"""
