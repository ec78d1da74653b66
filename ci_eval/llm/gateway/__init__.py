"""The model gateway: agents' calls of models are recorded, replayed and metered; keys stay here."""
