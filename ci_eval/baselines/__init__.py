"""Stores that keep runs to compare with: one module for each.

Imports `forge`, `storage` and below, and no other plugin package.
"""
