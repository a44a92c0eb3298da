"""Pods of a workload: how their template is built, and how pods are inspected."""
