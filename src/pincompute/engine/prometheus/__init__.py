"""Prometheus as an add-on of a platform, with our rules."""
