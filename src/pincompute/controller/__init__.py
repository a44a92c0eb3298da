"""The loop around planning: key, snapshot, plan, steps, report."""
