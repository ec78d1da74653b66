"""`ci-eval adk`: what `adk eval` is given, says and leaves, with ci-eval at work between."""
