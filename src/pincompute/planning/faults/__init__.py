"""Faults that can be injected on purpose, to practise and to test the diagnosis."""
