"""Add-on: Kubeflow's training operator."""
