"""Simulated users for evalsets with scenarios: one module for each.

Imports `llm` and below, and no other plugin package.
"""
