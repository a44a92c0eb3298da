"""Agents that run beside a workload or on a node: identity, logs, secrets, metrics, ingress, network and storage."""
