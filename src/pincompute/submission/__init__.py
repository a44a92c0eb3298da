"""The desk: decides whether a document may become a workload, and keeps the record."""
