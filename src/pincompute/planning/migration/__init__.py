"""Import of existing Deployments: their short form, and their adoption without a restart."""
