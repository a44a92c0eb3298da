"""What is broken on purpose, so that anybody can try whether it is told."""
