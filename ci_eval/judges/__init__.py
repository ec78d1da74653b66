"""Judges that answer a criterion's questions: one module for each provider.

Imports `llm` and below, and no other plugin package.
"""
