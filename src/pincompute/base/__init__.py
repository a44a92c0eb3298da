"""Clock, ids, problems, settings, log: what every layer may use and nothing else may be needed for."""
