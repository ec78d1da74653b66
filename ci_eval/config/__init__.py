"""`ci-eval.yaml` and the eval configs of ADK and AgentFlow: from text to a validated `Config`.

Also opens the evalsets that a configuration names, and holds what follows from a `Config` alone:
presets, the meaning of criterion names, the selection of cases, and the secrets that it passes on.

Imports the plugin packages and below, because a configuration names plugins.
"""
