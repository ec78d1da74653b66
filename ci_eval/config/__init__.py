"""`ci-eval.yaml` and the eval configs of other tools: from text to a validated `Config`.

Imports the plugin packages and below, because a configuration names plugins.
"""
