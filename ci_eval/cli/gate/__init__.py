"""`ci-eval compare` and `ci-eval gate`: comparisons, explained verdicts and power analysis."""
