"""Logs: shippers that carry what containers say to a store, which keeps it when their pods are gone."""
