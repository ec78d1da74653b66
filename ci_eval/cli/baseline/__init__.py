"""`ci-eval baseline`: saves runs to a baseline if policy lets it; shows, compares, removes them."""
