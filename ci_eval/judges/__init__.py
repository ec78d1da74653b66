"""Judges, which send a criterion's questions to a model: one module per provider.

One more judge answers from a script of the user, without a model.

Imports `llm` and below, and no other plugin package.
"""
