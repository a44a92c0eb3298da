"""The algebra of Kubernetes JSON, pure: names, owners, conditions, comparison."""
