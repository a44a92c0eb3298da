"""Our nouns: one file a kind, with its fields, defaults, validation and printer columns; emits the CRDs."""
