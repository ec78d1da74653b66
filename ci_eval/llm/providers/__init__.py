"""Providers of models, for judges and agents, and their connections, settings and failures."""
