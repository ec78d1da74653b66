"""Output on a pull request: comment, check run and annotations, also for forks.

Imports `config` and below; of the stages it uses only the records.
"""
