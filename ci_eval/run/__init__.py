"""The pipeline: plans, executes trials with all participants, scores, collects, writes the report.

It first checks what criteria and cases require.  What belongs to a single run is here, too: its
choice of a baseline, its metadata, its further rounds, and its arms, which are the change and the
merge base.  So are the environments that both arms use, the answers of humans that an agent waits
for, and the shards of a suite that several jobs run.

Imports `gate`, `config` and below.
"""
