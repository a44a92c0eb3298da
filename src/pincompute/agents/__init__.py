"""Agents that run beside a workload or on a node: identity, logs, metrics, ingress, network and storage."""
