"""Agents that can be evaluated: one module for each type.

Imports `llm` and below, and no other plugin package.
"""
