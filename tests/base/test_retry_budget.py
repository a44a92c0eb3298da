"""The retry budget bounds retries to a share of all requests and a reserve."""

from __future__ import annotations

from pincompute.base.retry_budget import RetryBudget


def test_retries_in_an_outage_stay_within_the_share_and_the_reserve() -> None:
    budget = RetryBudget(share=0.1, reserve=10)
    retries = 0
    for _ in range(1000):
        budget.earn()
        retries += budget.spend() + budget.spend()
    assert retries == 10 + 99


def test_unused_tokens_are_capped_at_the_reserve() -> None:
    budget = RetryBudget(share=0.5, reserve=2)
    for _ in range(100):
        budget.earn()
    assert [budget.spend() for _ in range(3)] == [True, True, False]
