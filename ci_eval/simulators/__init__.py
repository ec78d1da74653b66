"""Who plays the users of scenarios."""
