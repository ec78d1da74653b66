"""What traces are scored on: one module for each criterion."""
