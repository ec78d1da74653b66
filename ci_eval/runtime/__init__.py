"""What a run runs on: its context, processes and sandboxes, isolation, git, paths, HTTP, retries.

Imports `run_files`, `text` and below.
"""
