"""The documents that a report becomes: one module for each."""
