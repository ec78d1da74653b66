"""Files that lie elsewhere: Google Cloud Storage, downloads, and ADK.s own storage.

Imports `runtime` and below.
"""
