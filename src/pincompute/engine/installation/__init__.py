"""Installs, upgrades and removes the platform on an existing cluster."""
