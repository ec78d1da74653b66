"""Agent types: the ways to run the agents that are evaluated, one module each.

Imports `llm` and below, and no other plugin package.
"""
