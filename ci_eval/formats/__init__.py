"""Shared parts of the readers of evalsets and recordings: sniffing, other tools' messages, events.

Also personas of simulated users, cases of agents-cli, and replies of providers: their streams, and
the models that they report.  The readers themselves are in `evalsets` and `recordings`.

Imports `plugins` and below.
"""
