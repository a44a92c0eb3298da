"""The wire: a small async client for any kind, with watch and informer; it knows none of our kinds."""
