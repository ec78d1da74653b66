"""What can be evaluated: one module for each type of agent."""
