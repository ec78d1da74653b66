"""The gate: compares runs with the baseline, tests for breaks and drops, checks floors, decides.

It also reports what keeps the verdict from being trusted: a weakened gate, missing credentials.

Imports `config` and below; starts no process and calls no model.
"""
