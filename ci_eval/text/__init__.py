"""Text: parsing YAML and JSON with limits, redacting secrets, escaping, our own templates.

Imports `stats` and `records`.
"""
