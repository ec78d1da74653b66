"""What the readers of evalsets and recordings share: sniffing, messages and events of other tools.

The readers themselves are in `evalsets` and `recordings`.  Replies of providers are read here, too:
their streams, and the models that they report.

Imports `plugins` and below.
"""
