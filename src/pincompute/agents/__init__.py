"""Agents that run beside a workload or on a node: identity, logs, ingress, network and storage."""
