"""The evalset formats that can be read: one module for each."""
