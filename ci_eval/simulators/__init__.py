"""Simulated users for evalsets with scenarios, one per module.

Shared parts are private modules: model calls, histories and personas.

Imports `llm` and below, and no other plugin package.
"""
