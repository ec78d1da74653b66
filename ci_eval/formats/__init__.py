"""What the readers of evalsets and recordings share: sniffing, messages and events of other tools.

Readers themselves are in `evalsets` and `recordings`; what two of them need is here, and how
replies of providers are read: their streams, and the models that they report.

Imports `plugins` and below.
"""
