"""Kubeflow's training operator, on those platforms that ask for it."""
