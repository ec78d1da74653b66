"""`ci-eval judge check`: calibration: how well a judge agrees with people."""
