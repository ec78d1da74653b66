"""Comparison with the baseline, and the verdict.

Imports `config` and below; starts no process and calls no model.
"""
