"""The comparison of a run with its baseline, and the verdict that follows from it.

Imports `config` and below; starts nothing and asks no model.
"""
