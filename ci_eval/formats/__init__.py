"""What the readers of evalsets and recordings share: sniffing, messages and events of other tools.

Imports `plugins` and below.
"""
