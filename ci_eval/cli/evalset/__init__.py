"""`ci-eval evalset`: creation (also from traces), lossless editing, conversion, migration."""
