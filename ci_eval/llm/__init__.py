"""The client of language models: providers, prompts, retries, rate limits, budgets, cassettes.

Imports `plugins`, `runtime` and below.
"""
