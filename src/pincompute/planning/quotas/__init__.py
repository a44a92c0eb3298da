"""What a workload holds of its project's quota, what is left of it, and what Kubernetes counted last."""
