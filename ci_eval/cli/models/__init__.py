"""`ci-eval models`: contents and gaps of the cassettes with agents' model calls."""
