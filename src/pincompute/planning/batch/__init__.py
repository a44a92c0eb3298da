"""Batch and cron jobs: attempts and runs, their Jobs, and their results."""
