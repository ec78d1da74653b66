"""`ci-eval judge check`: how well a judge agrees with people."""
