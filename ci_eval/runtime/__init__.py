"""Operating system and network: processes, isolation, git, paths, HTTP, retries.

Imports `run_files`, `text` and below.
"""
