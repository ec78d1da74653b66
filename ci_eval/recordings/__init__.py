"""Formats of recorded conversations, one per module.

Most of them are traces, so the modules that read spans are here, too.  Others are results and
sessions of ADK, and reports of AgentFlow.

Imports `formats` and below, and no other plugin package.
"""
