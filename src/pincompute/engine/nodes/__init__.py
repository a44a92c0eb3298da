"""Nodes: the real one, made of containers in a network of its own, and those that are simulated."""
