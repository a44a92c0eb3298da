"""Read models of a workload: summary, detail, events, history, and previews of a plan and of capacity."""
