"""The environment of a run: context, processes, isolation, git, paths, HTTP, retries, storage.

User templates are rendered in a sandboxed process, so they are here too.

Imports `run_files`, `text` and below.
"""
