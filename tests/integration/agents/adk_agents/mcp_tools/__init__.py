from . import agent  # noqa: F401  # as `adk create` writes it
