"""`ci-eval evalset`: lossless creation (also from traces), editing, conversion, migration."""
