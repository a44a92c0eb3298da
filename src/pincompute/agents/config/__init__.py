"""Configuration bundles: the store that keeps them, and the programs that bring them into pods."""
