"""Judges that answer a criterion's questions, one module per provider.

Imports `llm` and below, and no other plugin package.
"""
