"""Formats of files that hold conversations which took place."""
