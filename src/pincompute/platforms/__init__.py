"""Compute platforms behind one protocol, which the desk and the CLI use, and the store of their builds."""
