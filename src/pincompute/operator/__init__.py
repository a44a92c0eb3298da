"""The process that runs every loop."""
