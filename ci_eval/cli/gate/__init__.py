"""The commands about the gate: what it compares with, why it decides so, and what it can see."""
