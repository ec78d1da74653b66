"""The pipeline: plans, executes trials with all participants, scores, collects, writes the report.

Before, it checks what criteria and cases require.  Here are also the choices of one run: its
baseline, its metadata, its further rounds, its arms (the change and its merge base) and the
environments that these share; the answers of people whom an agent waits for; and the shards of a
suite that several jobs run.

Imports `gate`, `config` and below.
"""
