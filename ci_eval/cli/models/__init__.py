"""`ci-eval models`: what cassettes with agents' calls of models hold, and what they lack."""
