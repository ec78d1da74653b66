"""The gate: compares runs with the baseline, tests for breaks and drops, checks floors, decides.

Where both arms were run, it tests the change against its merge base.  It also reports what keeps
the verdict from being trusted: missing credentials, and a change that weakens what it is judged by:
its settings, files and cases, compared with the earlier ones.

Imports `config` and below; starts no process and calls no model.
"""
