"""The agent of a node for debugging: programs, processes and files of its containers, by grants of the desk."""
