"""Copies that train together: handed over at once, and judged as one."""
