"""Evalset formats, one per module: our own, and those of ADK, AgentFlow, agents-cli and others.

Shared parts are private modules: entries of cases, tables, and reading with limits.

Imports `formats` and below, and no other plugin package.
"""
