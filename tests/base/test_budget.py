"""What is done once more is a share of all that is done, and a few."""

from __future__ import annotations

from pincompute.base.budget import Budget


def test_an_outage_multiplies_nothing() -> None:
    budget = Budget(share=0.1, reserve=10)
    again = 0
    for _ in range(1000):
        budget.earn()
        again += budget.spend() + budget.spend()
    assert again == 10 + 99


def test_what_was_not_needed_is_not_saved_for_ever() -> None:
    budget = Budget(share=0.5, reserve=2)
    for _ in range(100):
        budget.earn()
    assert [budget.spend() for _ in range(3)] == [True, True, False]
