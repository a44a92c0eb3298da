"""Foundation of every layer: clock, ids, problems and reasons, settings, logging, and helpers for asyncio and files."""
