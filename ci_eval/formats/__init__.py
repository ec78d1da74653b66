"""What the readers of evalsets and recordings share: sniffing, messages and events of other tools.

Readers themselves are in `evalsets` and `recordings`; what two of them need is here.

Imports `plugins` and below.
"""
