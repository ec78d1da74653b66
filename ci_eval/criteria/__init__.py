"""Criteria that score traces, one or a few related ones per module.

Names begin with the system that the criteria come from: `adk_`, `agentflow_`, or `ci_` for our own,
among them the user's functions in Python.

What several of them share is private: measures of texts, calls and tokens, schemas and readers of
judges' answers.

Imports `llm` and below, and no other plugin package.
"""
