"""Benchmarks: figures with thresholds, measured on this machine by `make bench`."""
