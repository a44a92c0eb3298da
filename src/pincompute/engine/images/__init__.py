"""Images: the registry that keeps them, and the ways in which they come into it."""
