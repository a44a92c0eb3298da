"""Migrations of the tables, one file for each."""
