"""The Kubernetes platform: list, follow, logs, exec, dry run and writes of our resources."""
