"""Chaos against the whole stack, and a comparison that shares no code with the product: `python -m tests.attack`."""
