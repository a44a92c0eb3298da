"""StatsD: a sidecar receives the metrics of a program, and serves them to Prometheus."""
