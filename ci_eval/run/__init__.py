"""The pipeline: plans, executes trials with all participants, scores, collects, writes the report.

It first checks what criteria and cases require.  This package also holds the choices of one run:
its baseline, its metadata, its further rounds, its arms (the change and its merge base) and the
environments that these share; the answers of humans that an agent waits for; and the shards of a
suite that several jobs run.

Imports `gate`, `config` and below.
"""
