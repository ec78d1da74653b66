"""Criteria that traces are scored on: one module for each.

Imports `llm` and below, and no other plugin package.
"""
