"""Real Kubernetes on one machine: build, start, nodes, images, stop."""
