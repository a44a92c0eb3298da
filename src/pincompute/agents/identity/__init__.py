"""Pod identity: the signer of pod certificates, and their use by programs in pods."""
