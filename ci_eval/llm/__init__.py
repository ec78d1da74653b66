"""The client of language models: providers, prompts, retries, rate limits, budgets, cassettes.

Cassettes are files of recorded calls, to which lines are appended.

Imports `plugins`, `runtime` and below.
"""
