"""Randomizers on a user's device, and how votes are estimated from many of their answers."""
