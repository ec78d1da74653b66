"""Client of language models: providers and model settings, prompts, answers, rate limits, budgets.

It also decides which failed model calls to retry, and records calls: cassettes are files with one
call per line.

Imports `plugins`, `runtime` and below.
"""
