"""Validation of Project: name, members and quota."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from pincompute.api.documents import read_documents
from pincompute.api.membership import ReviewMode
from pincompute.api.project import Project, Tier
from pincompute.api.validation import parse_resource
from pincompute.base.problem import Refused
from signed_builds import trusted_keys

ROOT = Path(__file__).parents[2]
GOOD: dict[str, Any] = {
    "apiVersion": "pinterest.com/v1",
    "kind": "Project",
    "metadata": {"name": "ads"},
    "spec": {"owner": "team-ads", "quota": {"on-demand": {}}},
}


def parsed_project(**spec: Any) -> Project:
    (document,) = read_documents(yaml.safe_dump({**GOOD, "spec": {**GOOD["spec"], **spec}}), "ads.yaml")
    project = parse_resource(document, "me")
    assert isinstance(project, Project)
    return project


def refusal(document: Any) -> str:
    (only,) = read_documents(yaml.safe_dump(document), "ads.yaml")
    with pytest.raises(Refused) as refused:
        parse_resource(only, "me")
    return refused.value.text()


def spec_errors(**spec: Any) -> str:
    return refusal({**GOOD, "spec": {**GOOD["spec"], **spec}})


def test_defaults() -> None:
    project = parsed_project()
    assert project.metadata.namespace == ""
    assert project.spec.review is ReviewMode.LANDED
    assert project.spec.quota.tier_quota(Tier.RESERVED) is None
    assert project.spec.quota.tier_quota(Tier.ON_DEMAND) is not None


@pytest.mark.parametrize("file", ["examples/project.yaml", "examples/long/project.yaml"])
def test_accepts_examples(file: str) -> None:
    (document,) = read_documents((ROOT / file).read_text(), file)
    assert isinstance(parse_resource(document, "me"), Project)


@pytest.mark.parametrize("name", ["default", "pincompute-system", "kube-system", "kube-mine"])
def test_rejects_reserved_namespace(name: str) -> None:
    message = refusal({**GOOD, "metadata": {"name": name}})
    assert message == (
        f"ads.yaml:4 metadata.name: {name} is a namespace reserved by the cluster  [DocumentInvalid]\n"
        "  next: choose another name"
    )


def test_rejects_long_name_and_project_field() -> None:
    assert "a name has at most 50" in refusal({**GOOD, "metadata": {"name": "a" * 51}})
    assert "Project is cluster-scoped and has no project" in refusal(
        {**GOOD, "metadata": {"name": "ads", "project": "ads"}}
    )


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"owner": None}, "owner is None"),
        ({"owner": " "}, "spec.owner: the owner is blank"),
        ({"quota": {}}, "spec.quota: the quota names no tier"),
        ({"quota": {"storage": "10Ti"}}, "next: quota: {on-demand: {}}"),
        ({"quota": {"on-demnd": {}}}, "did you mean on-demand?"),
        ({"quota": {"reserved": {"cpu": "many"}}}, "expected a quantity such as 2, 500m or 512Mi"),
        ({"quota": {"reserved": {"gpus": -1}}}, "gpus is -1"),
        ({"review": "closed"}, "review is 'closed': expected landed, open"),
        ({"members": {"viewer": {}}}, "spec.members.viewer: viewer has no members"),
        ({"members": {"admin": {"people": ["ann"]}}}, "fields: owner, deployer, viewer"),
        (
            {"members": {"owner": {"people": ["ann"]}, "viewer": {"people": ["ben", "ann"]}}},
            "spec.members.viewer.people.1: ann already has the role owner",
        ),
        (
            {"members": {"viewer": {"groups": ["ads", "ads"]}}},
            "spec.members.viewer.groups.1: ads already has the role viewer",
        ),
        ({"members": {"viewer": {"groups": ["system:authenticated"]}}}, "'system:authenticated' cannot be a member"),
        ({"members": {"viewer": {"people": [" "]}}}, "' ' cannot be a member"),
        ({"callers": ["search", "ads"]}, "spec.callers.1: ads is this project"),
        ({"callers": ["Search"]}, "callers"),
    ],
)
def test_rejects_invalid_project_spec(spec: dict[str, Any], message: str) -> None:
    assert message in spec_errors(**spec)


def test_user_and_group_may_have_same_name() -> None:
    parsed_project(members={"owner": {"people": ["ads"]}, "viewer": {"groups": ["ads"]}})


def test_requires_owner() -> None:
    assert "owner is missing" in refusal({**GOOD, "spec": {"quota": {"reserved": {}}}})


@pytest.mark.parametrize(
    "repository", ["/srv/git/shop.git", "../my shop", "https://git.example.com/shop", "git@host:a"]
)
def test_accepts_every_address_of_a_repository(repository: str) -> None:
    landing = {"repository": repository, "builders": trusted_keys("ci"), "people": trusted_keys("ann", "ben")}
    found = parsed_project(review="landed", landing=landing).spec.landing
    assert found is not None
    assert found.repository == repository


@pytest.mark.parametrize("repository", ["--upload-pack=id", "/srv/shop\n", "/srv/shop\nother", ""])
def test_rejects_address_that_is_an_option_or_has_lines(repository: str) -> None:
    landing = {"repository": repository, "builders": trusted_keys("ci"), "people": trusted_keys("ann", "ben")}
    assert "spec.landing.repository" in spec_errors(review="landed", landing=landing)
