"""Baseline stores: where runs are kept to compare with, one module each.

What they share is private: documents, indexes, the data branch, access to GitHub.

Imports `forge` and below, and no other plugin package.
"""
