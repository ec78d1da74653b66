"""Judges, which send a criterion's questions to a model: one module per provider.

Imports `llm` and below, and no other plugin package.
"""
