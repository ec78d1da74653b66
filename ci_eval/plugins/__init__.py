"""Extension points: what each kind of plugin declares, and registries of names.

Imports `runtime` and below, never a plugin.
"""
