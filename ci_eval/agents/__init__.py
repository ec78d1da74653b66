"""Agent types: the ways to run the agents that are evaluated, one module each.

There is one for each framework, for servers, commands, Python functions, recordings, and models
with a prompt alone.

Imports `llm` and below, and no other plugin package.
"""
