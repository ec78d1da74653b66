"""Where runs to compare with are kept: one module for each store."""
