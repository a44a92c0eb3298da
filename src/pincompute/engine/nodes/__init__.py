"""Nodes of a platform: the real node, in a network namespace of its own, and simulated nodes."""
