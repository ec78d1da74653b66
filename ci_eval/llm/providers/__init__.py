"""Providers of models, for judges and agents."""
