"""What a run runs on: its context, processes, isolation, git, paths, HTTP, retries, storage.

Templates of users are rendered in a sandboxed process, so they are here too.

Imports `run_files`, `text` and below.
"""
