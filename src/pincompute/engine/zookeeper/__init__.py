"""ZooKeeper as an add-on of a platform, and the registrar of its node, which may also use another ensemble."""
