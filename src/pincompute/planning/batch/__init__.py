"""Work that ends: its attempts and runs, the Jobs of each, and what came of them."""
