"""`ci-eval baseline`: stores, shows, compares and removes the runs of a baseline."""
