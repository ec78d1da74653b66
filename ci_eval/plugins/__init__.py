"""Extension points: the interface of each kind of plugin, and the registries of names.

Imports `runtime` and below, never a plugin.
"""
