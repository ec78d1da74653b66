"""Criteria that score traces, one per module.

Imports `llm` and below, and no other plugin package.
"""
