"""Files that ci-eval writes and reads again: runs, traces, reports, shards, badges.

With what is derived from them: run summaries, score tables, the phrases of reports, and what
`--resume` may reuse.

Imports `text` and below.
"""
