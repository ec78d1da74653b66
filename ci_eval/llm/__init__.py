"""Calls of language models: providers, prompts, retries, rate limits, budgets and recorded answers.

Imports `plugins`, `runtime` and below.
"""
