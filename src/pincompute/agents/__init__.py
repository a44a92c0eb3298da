"""Agents that run beside a workload or on a node: identity, logs, secrets, ingress, network and storage."""
