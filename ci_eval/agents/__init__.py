"""Agent types: the ways to run the agents that are evaluated, one module each.

There is one for each framework (ADK, OpenAI Agents), for servers, commands, Python functions,
recordings, and bare models with a prompt (Gemini, OpenAI's chat).  Modules that read an agent's
protocol, events or replies are private.

Imports `llm` and below, and no other plugin package.
"""
