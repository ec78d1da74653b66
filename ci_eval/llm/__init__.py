"""Client of language models: providers, prompts, answers, retries, rate limits, budgets, cassettes.

Cassettes are files of recorded calls, to which lines are appended.

Imports `plugins`, `runtime` and below.
"""
