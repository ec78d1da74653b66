"""`ci-eval.yaml` and the eval configs of ADK and AgentFlow: from text to a validated `Config`.

It opens the evalsets that they name.  Also what follows from a `Config` alone: presets, which
criterion a name means, the selection of cases, the secrets it hands on.

Imports the plugin packages and below, because a configuration names plugins.
"""
