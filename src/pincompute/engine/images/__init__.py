"""Builds images, loads them from archives, and runs the platform's registry."""
