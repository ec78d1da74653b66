"""Evalsets edited: made, added to, changed, converted, migrated, and nothing lost."""
