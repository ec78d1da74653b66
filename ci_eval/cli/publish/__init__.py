"""`ci-eval publish`: its options, and where stored reports are posted."""
