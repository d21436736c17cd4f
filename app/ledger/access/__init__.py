"""Access keys, what they may do, and who made and used them."""
