"""Planners, one per kind: each computes the Kubernetes objects that a workload of the kind becomes."""
