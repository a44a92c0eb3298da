"""Validation of a project's review policy."""

from __future__ import annotations

from typing import Any

import pytest

from pincompute.api.landing import Landing
from signed_builds import trusted_keys

GOOD: dict[str, Any] = {"repository": "/git", "builders": trusted_keys("ci"), "people": trusted_keys("ann", "ben")}


def errors_of(**more: Any) -> list[str]:
    return [
        f"{'.'.join(map(str, each.path))}: {each.what}"
        for each in Landing(**{**GOOD, **more}).field_errors(("landing",))
    ]


def test_accepts_valid_policy() -> None:
    assert errors_of() == []


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"builders": {}}, "landing.builders: at least one builder is required"),
        ({"builders": {"ci": "hello"}}, "landing.builders.ci: invalid public key of ci"),
        (
            {"repository": "http://git.example.com/shop"},
            "landing.repository: http:// is not accepted: it must be https://",
        ),
        ({"repository": "ext::sh -c id"}, "landing.repository: ext:: is not accepted"),
        ({"reviewers": 3}, "landing.people: 3 reviewers are required, but only 2 are listed"),
        ({"builders": {"ci": trusted_keys("ann")["ann"]}}, "landing.people.ann: ann and ci have the same key"),
        (
            {"people": {"ann": trusted_keys("ann")["ann"], "me": trusted_keys("ann")["ann"] + " me"}},
            "me and ann have the same key",
        ),
    ],
)
def test_rejects_missing_or_shared_keys(more: dict[str, Any], message: str) -> None:
    (error,) = errors_of(**more)
    assert message in error


@pytest.mark.parametrize(
    "address",
    ["/srv/git/shop.git", "../shop", "https://git.example.com/shop", "ssh://git@git.example.com/shop", "file:///srv/shop",
     "git@git.example.com:ads/shop.git", "http://127.0.0.1:8080/shop", "http://localhost/shop", "http://u:p@[::1]/shop"],
)  # fmt: skip
def test_accepts_protected_addresses(address: str) -> None:
    assert errors_of(repository=address) == []
