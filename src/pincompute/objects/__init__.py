"""Pure functions over Kubernetes JSON: quantities, owners, comparison, field managers, schedules and CEL rules."""
