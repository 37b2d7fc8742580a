"""What a user's device sends, and how votes are read from many such answers."""
