"""Simulated users for evalsets with scenarios, one per module.

What they share is private: their calls of models, histories and personas.

Imports `llm` and below, and no other plugin package.
"""
