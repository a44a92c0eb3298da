"""Secrets: the store with versions, grants and an audit log, and the agent that keeps them in the pods."""
