"""`ci-eval run`, and running a plan with its progress on the terminal."""
