"""The proxy of mutual TLS between workloads: its build from Go, and its image."""
