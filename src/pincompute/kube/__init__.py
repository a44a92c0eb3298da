"""Async Kubernetes client for any resource, with watch, informer and lease. It knows none of our kinds."""
