"""The merge of parts into a pod template: nothing is lost, nobody wins silently, and the order is the runtime's."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleets import part
from pincompute.planning.pods.injection import inject

PLAIN: dict[str, Any] = {
    "metadata": {"labels": {"pinterest.com/project": "me", "pinterest.com/workload": "hello", "team": "ads"}},
    "spec": {
        "containers": [{"name": "hello", "image": "hello:1", "env": [{"name": "A", "value": "1"}]}],
        "initContainers": [{"name": "prepare", "image": "prepare:1", "ports": [{"containerPort": 7000}]}],
        "volumes": [{"name": "scratch", "emptyDir": {}}],
        "terminationGracePeriodSeconds": 33,
    },
}
IDENTITY = part(
    "identity-1",
    image="identity:1",
    volumes=[{"name": "identity", "emptyDir": {}}],
    mounts=[{"name": "identity", "mountPath": "/run/identity"}],
    environment={"IDENTITY": "/run/identity"},
)


def names(containers: list[dict[str, Any]]) -> list[str]:
    return [each["name"] for each in containers]


def test_without_parts_nothing_changes() -> None:
    assert inject(PLAIN, (), {"logs": {"level": "debug"}}).template is PLAIN


def test_what_is_handed_in_is_left_as_it_was() -> None:
    before = copy.deepcopy(PLAIN)
    inject(PLAIN, (IDENTITY, part("logs-2")), {})
    assert before == PLAIN


def test_parts_start_in_the_order_of_the_runtime_and_before_the_workload() -> None:
    for parts in ((IDENTITY, part("logs-2")), (part("logs-2"), IDENTITY)):
        spec = inject(PLAIN, parts, {}).template["spec"]
        assert names(spec["initContainers"]) == [*(each.part for each in parts), "prepare"]
        assert [each.get("restartPolicy") for each in spec["initContainers"]] == ["Always", "Always", None]


def test_every_container_of_the_workload_gets_what_parts_add_and_keeps_its_own() -> None:
    spec = inject(PLAIN, (IDENTITY,), {}).template["spec"]
    hello, prepare = spec["containers"][0], spec["initContainers"][-1]
    assert hello["env"] == [{"name": "IDENTITY", "value": "/run/identity"}, {"name": "A", "value": "1"}]
    assert prepare["volumeMounts"] == [{"name": "identity", "mountPath": "/run/identity"}]
    assert prepare["ports"] == [{"containerPort": 7000}]


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda each: st.lists(each) | st.dictionaries(st.text(max_size=4), each),
    max_leaves=6,
)


@given(st.dictionaries(st.text(min_size=1, max_size=6).map(lambda each: f"x{each}"), json, max_size=4))
def test_no_field_of_the_template_is_lost(unknown: dict[str, Any]) -> None:
    container = {**PLAIN["spec"]["containers"][0], **unknown}
    template = {**PLAIN, **unknown, "spec": {**PLAIN["spec"], **unknown, "containers": [container]}}
    made = inject(template, (IDENTITY, part("logs-2")), {}).template
    for before, after in (
        (template, made),
        (template["spec"], made["spec"]),
        (container, made["spec"]["containers"][0]),
    ):
        assert before.keys() <= after.keys()
        assert all(after[field] == before[field] for field in unknown)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"sidecars": [{"name": "hello", "image": "a:1"}]}, "both want the container name 'hello'"),
        ({"image": "a:1", "port": 7000}, "container 'prepare' and logs-2, a part of the runtime, both want port 7000"),
        ({"environment": {"A": "2"}}, "both want the variable A in container 'hello'"),
        ({"volumes": [{"name": "scratch", "emptyDir": {}}]}, "both want the volume name 'scratch'"),
        ({"labels": {"team": "logs"}}, "both want the label team"),
    ],
)
def test_a_conflict_names_both_sides_and_nothing_is_injected(spec: dict[str, Any], words: str) -> None:
    injected = inject(PLAIN, (part("logs-2", **spec),), {})
    (problem,) = injected.problems
    assert words in problem.what
    assert "logs-2" in problem.what
    assert str(problem.where) == "me/hello"
    assert problem.next.endswith("in the workload's file")
    assert (injected.template, injected.parts) == (PLAIN, ())


def test_udp_and_tcp_do_not_meet() -> None:
    sidecar = {"name": "logs", "image": "a:1", "ports": [{"containerPort": 7000, "protocol": "UDP"}]}
    assert inject(PLAIN, (part("logs-2", sidecars=[sidecar]),), {}).problems == ()


def test_paths_that_only_differ_in_a_slash_meet() -> None:
    template = copy.deepcopy(PLAIN)
    template["spec"]["containers"][0]["volumeMounts"] = [{"name": "scratch", "mountPath": "/run/identity/"}]
    (problem,) = inject(template, (IDENTITY,), {}).problems
    assert "both want the path /run/identity in container 'hello'" in problem.what


def test_a_volume_that_stands_elsewhere_is_taken_all_the_same() -> None:
    """A StatefulSet's claims are no volumes of its template."""
    template = copy.deepcopy(PLAIN)
    template["spec"]["containers"][0]["volumeMounts"] = [{"name": "identity", "mountPath": "/data"}]
    (problem,) = inject(template, (IDENTITY,), {}).problems
    assert "the volume name 'identity'" in problem.what


def test_a_part_that_needs_another_has_what_that_one_adds() -> None:
    needy = part("logs-2", image="logs:2", needs=["identity"])
    identity, logs, _ = inject(PLAIN, (IDENTITY, needy), {}).template["spec"]["initContainers"]
    assert logs["volumeMounts"] == IDENTITY.spec.mounts
    assert {"name": "IDENTITY", "value": "/run/identity"} in logs["env"]
    assert "volumeMounts" not in identity


@pytest.mark.parametrize("before", [(), (part("mesh-1"),)])
def test_what_a_part_needs_starts_before_it(before: tuple[Any, ...]) -> None:
    made = inject(PLAIN, (*before, part("logs-2", image="logs:2", needs=["identity"]), IDENTITY), {})
    assert [each.reason.code for each in made.problems] == ["PartsDisagree"]
    assert made.template is PLAIN


def test_what_is_needed_may_be_had_in_another_way() -> None:
    other = part("mesh-identity-3", image="mesh:3", provides="identity", environment={"IDENTITY": "/run/mesh"})
    needy = part("logs-2", image="logs:2", needs=["identity"])
    made = inject(PLAIN, (other, needy), {})
    assert made.problems == ()
    _, logs, _ = made.template["spec"]["initContainers"]
    assert {"name": "IDENTITY", "value": "/run/mesh"} in logs["env"]
    after = inject(PLAIN, (needy, other), {})
    assert [each.reason.code for each in after.problems] == ["PartsDisagree"]
