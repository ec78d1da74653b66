"""`ci-eval evalset`: lossless creation, editing, conversion and migration of evalsets."""
