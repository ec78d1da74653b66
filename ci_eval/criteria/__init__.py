"""Criteria that score traces, one or a few related ones per module.

Module names start with the origin of the criteria: `adk_`, `agentflow_`, or `ci_` for our own,
which include the user's Python functions.

Shared parts are private modules: measures of texts, calls and tokens, and parsers of judges'
answers.

Imports `llm` and below, and no other plugin package.
"""
