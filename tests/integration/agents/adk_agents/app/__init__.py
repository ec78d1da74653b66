from . import agent  # noqa: F401, TID252  # as `adk create` writes it
