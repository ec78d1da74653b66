"""Text: parsing YAML and JSON with limits, diffs, redacting secrets, escaping, our own templates.

Also streams of JSON, patterns, fingerprints, suggestions for misspelt words, and phrases for
validation errors.

Imports `stats` and `records`.
"""
