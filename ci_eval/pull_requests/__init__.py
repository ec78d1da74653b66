"""What ci-eval writes to a pull request: its comment, check run and annotations, for forks too.

Imports `config` and what stands below it; of the stages it knows only their records.
"""
