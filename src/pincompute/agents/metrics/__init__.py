"""Metrics of workloads: their targets for Prometheus, and the resources that their pods use."""
