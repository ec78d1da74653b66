"""`ci-eval adk`: the options, output and result files of `adk eval`, on top of ci-eval."""
