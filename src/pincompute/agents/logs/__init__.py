"""Logs: shippers send the output of containers to a store, which keeps it after their pods are deleted."""
