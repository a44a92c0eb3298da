"""Rollouts: which replicas are replaced next, as pure functions of the observed pods.

Kubernetes itself rolls out Deployments. For StatefulSets it may block forever, so that `stateful_replicas` evicts the
replica that blocks; for DaemonSets it knows no waves, so that `daemon_waves` replaces the pods.
"""
