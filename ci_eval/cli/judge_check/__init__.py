"""`ci-eval judge check`: calibration, or how well a judge agrees with people."""
