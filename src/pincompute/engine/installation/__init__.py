"""The platform on a cluster that exists: what it consists of there, and how it comes, changes and goes."""
