"""File and message formats of other tools: sniffing, known files, messages, events.

Imports `plugins` and below.
"""
