"""`ci-eval.yaml` and the eval configs of other tools, from text to a checked `Config`.

Imports the plugin packages and below, since a configuration names plugins.
"""
