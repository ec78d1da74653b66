"""Extension points: the interface of each kind of plugin, and the registries of names.

Kinds are agents, engines, evalsets, recordings, criteria, judges, simulators, baseline stores and
reporters.

Imports `runtime` and below, never a plugin.
"""
