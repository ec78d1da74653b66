"""Providers of models, as judges and agents reach them."""
