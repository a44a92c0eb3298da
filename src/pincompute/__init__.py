"""One short file, and a service runs on Kubernetes with everything around it already there."""

__version__ = "0.2.0"
