"""The model gateway answers agents' model calls: it records, replays, meters and limits them.

API keys stay here.  The gateway knows which conversation each call belongs to, and injects faults
if they are configured.
"""
