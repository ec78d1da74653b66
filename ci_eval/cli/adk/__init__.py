"""`ci-eval adk`: imitates `adk eval`: its options, interpreters, output and result files."""
