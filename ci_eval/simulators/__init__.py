"""Simulated users for evalsets with scenarios, one per module.

Imports `llm` and below, and no other plugin package.
"""
