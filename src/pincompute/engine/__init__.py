"""Real Kubernetes on one machine: build, start, nodes, images and stop; and the installation on existing clusters."""
