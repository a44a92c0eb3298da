"""Identity: who signs a pod's certificate, and how a program uses its own."""
