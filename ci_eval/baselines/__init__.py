"""Baseline stores: where the runs to compare with are kept, one module each.

Private modules hold what the stores share: documents, indexes, the data branch, access to GitHub.

Imports `forge` and below, and no other plugin package.
"""
