"""Our resource kinds: fields, defaults, validation and printer columns; generates the CRDs."""
