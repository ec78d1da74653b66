"""Criteria that score traces, one or a few related ones per module.

Imports `llm` and below, and no other plugin package.
"""
