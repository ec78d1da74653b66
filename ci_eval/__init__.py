"""Evaluate LLM agents on every pull request, and block the merge when one really got worse."""

__version__ = "0.1.0"
