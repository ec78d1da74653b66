"""`ci-eval run` and `ci-eval merge`: running a plan, or one shard of it, and what follows a run."""
