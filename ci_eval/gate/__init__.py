"""The gate: compares runs with the baseline, tests for breaks and drops, checks floors, decides.

If the merge base was run, too, it tests the change against that run.  It also finds reasons not to
trust a verdict: missing credentials, and changes of the settings, files and cases that decide it.

Imports `config` and below; starts no process and calls no model.
"""
