"""What a project may be called, who may be in it, and that it says what it may use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from pincompute.api.admission import admit
from pincompute.api.documents import read
from pincompute.api.membership import Review
from pincompute.api.project import Project, Tier
from pincompute.base.problem import Refused

ROOT = Path(__file__).parents[2]
GOOD: dict[str, Any] = {
    "apiVersion": "pinterest.com/v1",
    "kind": "Project",
    "metadata": {"name": "ads"},
    "spec": {"owner": "team-ads", "quota": {"on-demand": {}}},
}


def admitted(**spec: Any) -> Project:
    (document,) = read(yaml.safe_dump({**GOOD, "spec": {**GOOD["spec"], **spec}}), "ads.yaml")
    project = admit(document, "me")
    assert isinstance(project, Project)
    return project


def refusal(document: Any) -> str:
    (only,) = read(yaml.safe_dump(document), "ads.yaml")
    with pytest.raises(Refused) as refused:
        admit(only, "me")
    return refused.value.text()


def refused(**spec: Any) -> str:
    return refusal({**GOOD, "spec": {**GOOD["spec"], **spec}})


def test_what_is_not_said() -> None:
    project = admitted()
    assert project.metadata.namespace == ""
    assert project.spec.review is Review.LANDED
    assert project.spec.quota.of(Tier.RESERVED) is None
    assert project.spec.quota.of(Tier.ON_DEMAND) is not None


@pytest.mark.parametrize("file", ["examples/project.yaml", "examples/long/project.yaml"])
def test_the_examples(file: str) -> None:
    (document,) = read((ROOT / file).read_text(), file)
    assert isinstance(admit(document, "me"), Project)


@pytest.mark.parametrize("name", ["default", "pincompute-system", "kube-system", "kube-mine"])
def test_a_namespace_of_the_clusters_own_is_no_project(name: str) -> None:
    told = refusal({**GOOD, "metadata": {"name": name}})
    assert told == (
        f"ads.yaml:4 metadata.name: {name} is a namespace of the cluster's own  [DocumentInvalid]\n"
        "  next: choose another name"
    )


def test_a_name_leaves_room() -> None:
    assert "a name has at most 50" in refusal({**GOOD, "metadata": {"name": "a" * 51}})
    assert "a Project belongs to no project" in refusal({**GOOD, "metadata": {"name": "ads", "project": "ads"}})


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"owner": None}, "owner is None"),
        ({"owner": " "}, "spec.owner: the owner is blank"),
        ({"quota": {}}, "spec.quota: no tier is named, so that nothing could ever run"),
        ({"quota": {"storage": "10Ti"}}, "next: quota: {on-demand: {}}"),
        ({"quota": {"on-demnd": {}}}, "did you mean on-demand?"),
        ({"quota": {"reserved": {"cpu": "many"}}}, "expected an amount such as 2, 500m or 512Mi"),
        ({"quota": {"reserved": {"gpus": -1}}}, "gpus is -1"),
        ({"review": "closed"}, "review is 'closed': expected landed, open"),
        ({"members": {"viewer": {}}}, "spec.members.viewer: viewer names nobody"),
        ({"members": {"admin": {"people": ["ann"]}}}, "the fields here are owner, deployer, viewer"),
        (
            {"members": {"owner": {"people": ["ann"]}, "viewer": {"people": ["ben", "ann"]}}},
            "spec.members.viewer.people.1: ann is owner already",
        ),
        ({"members": {"viewer": {"groups": ["ads", "ads"]}}}, "spec.members.viewer.groups.1: ads is viewer already"),
        ({"members": {"viewer": {"groups": ["system:authenticated"]}}}, "'system:authenticated' cannot be a member"),
        ({"members": {"viewer": {"people": [" "]}}}, "' ' cannot be a member"),
        ({"callers": ["search", "ads"]}, "spec.callers.1: ads always reaches itself"),
        ({"callers": ["Search"]}, "callers"),
    ],
)
def test_faults(spec: dict[str, Any], told: str) -> None:
    assert told in refused(**spec)


def test_a_person_and_a_group_of_one_name_are_two() -> None:
    admitted(members={"owner": {"people": ["ads"]}, "viewer": {"groups": ["ads"]}})


def test_the_owner_must_be_named() -> None:
    assert "owner is missing" in refusal({**GOOD, "spec": {"quota": {"reserved": {}}}})
