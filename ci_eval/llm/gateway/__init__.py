"""The model gateway answers agents' calls of models: recorded, replayed, metered, and with limits.

Keys stay here.  It tells apart the conversations that call, and fails calls on purpose if asked to.
"""
