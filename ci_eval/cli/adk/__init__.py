"""`ci-eval adk`, which imitates `adk eval`: options, interpreters, output, result files."""
