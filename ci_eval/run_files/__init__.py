"""Files that ci-eval writes and reads again: runs, traces, reports, shards, badges.

Also what is derived from them: run summaries, score tables, the phrases of reports, and what
`--resume` may reuse.

Imports `text` and below.
"""
