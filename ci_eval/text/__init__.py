"""Text: parsing YAML and JSON with limits, redacting secrets, escaping, templates, suggestions.

Imports `stats` and `records`.
"""
