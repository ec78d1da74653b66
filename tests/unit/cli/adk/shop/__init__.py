from . import agent  # noqa: F401, TID252  # as ADK wants it
