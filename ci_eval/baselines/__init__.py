"""Baseline stores: where runs are kept to compare with, one module each.

Imports `forge`, `storage` and below, and no other plugin package.
"""
