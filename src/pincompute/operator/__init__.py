"""The operator process: leader election, the reconcile loop, and an HTTP server for health and metrics."""
