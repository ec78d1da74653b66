"""The gate: comparison with the baseline, hard breaks and drops, floors, exemptions, the verdict.

It also reports what keeps the verdict from being trusted: a weakened gate, missing credentials.

Imports `config` and below; starts no process and calls no model.
"""
