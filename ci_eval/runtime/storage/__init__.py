"""Remote files: Google Cloud Storage, downloads, and the layout of ADK's storage.

Imports `runtime` and below, as its siblings do.
"""
