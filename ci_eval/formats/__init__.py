"""What the readers of evalsets and recordings share: sniffing, messages and events of other tools.

Also personas of simulated users, and the cases of agents-cli.  The readers themselves are in
`evalsets` and `recordings`.  Replies of providers are read here, too: their streams, and the models
that they report.

Imports `plugins` and below.
"""
