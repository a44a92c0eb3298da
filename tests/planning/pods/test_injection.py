"""Injection of parts into a pod template: no field is lost, no conflict is resolved silently, order is kept."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, strategies as st

from pincompute.planning.pods.injection import inject_parts
from runtime_builders import build_part

PLAIN: dict[str, Any] = {
    "metadata": {"labels": {"pinterest.com/project": "me", "pinterest.com/workload": "hello", "team": "ads"}},
    "spec": {
        "containers": [{"name": "hello", "image": "hello:1", "env": [{"name": "A", "value": "1"}]}],
        "initContainers": [{"name": "prepare", "image": "prepare:1", "ports": [{"containerPort": 7000}]}],
        "volumes": [{"name": "scratch", "emptyDir": {}}],
        "terminationGracePeriodSeconds": 33,
    },
}
IDENTITY = build_part(
    "identity-1",
    image="identity:1",
    volumes=[{"name": "identity", "emptyDir": {}}],
    mounts=[{"name": "identity", "mountPath": "/run/identity"}],
    environment={"IDENTITY": "/run/identity"},
)


def names(containers: list[dict[str, Any]]) -> list[str]:
    return [each["name"] for each in containers]


def test_without_parts_the_template_stays() -> None:
    assert inject_parts(PLAIN, (), {"logs": {"level": "debug"}}).template is PLAIN


def test_does_not_change_its_input() -> None:
    before = copy.deepcopy(PLAIN)
    inject_parts(PLAIN, (IDENTITY, build_part("logs-2")), {})
    assert before == PLAIN


def test_parts_start_in_the_order_of_the_runtime_before_the_workload() -> None:
    for parts in ((IDENTITY, build_part("logs-2")), (build_part("logs-2"), IDENTITY)):
        spec = inject_parts(PLAIN, parts, {}).template["spec"]
        assert names(spec["initContainers"]) == [*(each.part_name for each in parts), "prepare"]
        assert [each.get("restartPolicy") for each in spec["initContainers"]] == ["Always", "Always", None]


def test_parts_add_to_all_containers_of_the_workload() -> None:
    spec = inject_parts(PLAIN, (IDENTITY,), {}).template["spec"]
    hello, prepare = spec["containers"][0], spec["initContainers"][-1]
    assert hello["env"] == [{"name": "IDENTITY", "value": "/run/identity"}, {"name": "A", "value": "1"}]
    assert prepare["volumeMounts"] == [{"name": "identity", "mountPath": "/run/identity"}]
    assert prepare["ports"] == [{"containerPort": 7000}]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda each: st.lists(each) | st.dictionaries(st.text(max_size=4), each),
    max_leaves=6,
)


@given(st.dictionaries(st.text(min_size=1, max_size=6).map(lambda each: f"x{each}"), json_values, max_size=4))
def test_keeps_all_fields_of_the_template(unknown: dict[str, Any]) -> None:
    container = {**PLAIN["spec"]["containers"][0], **unknown}
    template = {**PLAIN, **unknown, "spec": {**PLAIN["spec"], **unknown, "containers": [container]}}
    injected = inject_parts(template, (IDENTITY, build_part("logs-2")), {}).template
    for before, after in (
        (template, injected),
        (template["spec"], injected["spec"]),
        (container, injected["spec"]["containers"][0]),
    ):
        assert before.keys() <= after.keys()
        assert all(after[field] == before[field] for field in unknown)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"sidecars": [{"name": "hello", "image": "a:1"}]}, "both use container name 'hello'"),
        ({"image": "a:1", "port": 7000}, "container 'prepare' and logs-2, a part of the runtime, both use port 7000"),
        ({"environment": {"A": "2"}}, "both use variable A in container 'hello'"),
        ({"volumes": [{"name": "scratch", "emptyDir": {}}]}, "both use volume name 'scratch'"),
        ({"labels": {"team": "logs"}}, "both use label team"),
    ],
)
def test_conflict_names_both_sides_and_prevents_injection(spec: dict[str, Any], message: str) -> None:
    injected = inject_parts(PLAIN, (build_part("logs-2", **spec),), {})
    (problem,) = injected.problems
    assert message in problem.what
    assert "logs-2" in problem.what
    assert str(problem.where) == "me/hello"
    assert problem.next.endswith("in the workload's file")
    assert (injected.template, injected.parts) == (PLAIN, ())


def test_udp_and_tcp_ports_do_not_conflict() -> None:
    sidecar = {"name": "logs", "image": "a:1", "ports": [{"containerPort": 7000, "protocol": "UDP"}]}
    assert inject_parts(PLAIN, (build_part("logs-2", sidecars=[sidecar]),), {}).problems == ()


def test_paths_that_differ_in_a_trailing_slash_conflict() -> None:
    template = copy.deepcopy(PLAIN)
    template["spec"]["containers"][0]["volumeMounts"] = [{"name": "scratch", "mountPath": "/run/identity/"}]
    (problem,) = inject_parts(template, (IDENTITY,), {}).problems
    assert "both use path /run/identity in container 'hello'" in problem.what


def test_mounted_volume_outside_the_template_conflicts() -> None:
    """Volumes of a StatefulSet's claims are not listed in its template."""
    template = copy.deepcopy(PLAIN)
    template["spec"]["containers"][0]["volumeMounts"] = [{"name": "identity", "mountPath": "/data"}]
    (problem,) = inject_parts(template, (IDENTITY,), {}).problems
    assert "volume name 'identity'" in problem.what


def test_part_gets_the_additions_of_parts_it_needs() -> None:
    logs = build_part("logs-2", image="logs:2", needs=["identity"])
    identity, sidecar, _ = inject_parts(PLAIN, (IDENTITY, logs), {}).template["spec"]["initContainers"]
    assert sidecar["volumeMounts"] == IDENTITY.spec.mounts
    assert {"name": "IDENTITY", "value": "/run/identity"} in sidecar["env"]
    assert "volumeMounts" not in identity


@pytest.mark.parametrize("before", [(), (build_part("mesh-1"),)])
def test_rejects_part_before_the_one_it_needs(before: tuple[Any, ...]) -> None:
    injected = inject_parts(PLAIN, (*before, build_part("logs-2", image="logs:2", needs=["identity"]), IDENTITY), {})
    assert [each.reason.code for each in injected.problems] == ["PartsConflict"]
    assert injected.template is PLAIN


def test_need_can_be_met_by_another_part_that_provides_it() -> None:
    other = build_part("mesh-identity-3", image="mesh:3", provides="identity", environment={"IDENTITY": "/run/mesh"})
    logs = build_part("logs-2", image="logs:2", needs=["identity"])
    injected = inject_parts(PLAIN, (other, logs), {})
    assert injected.problems == ()
    _, sidecar, _ = injected.template["spec"]["initContainers"]
    assert {"name": "IDENTITY", "value": "/run/mesh"} in sidecar["env"]
    wrong_order = inject_parts(PLAIN, (logs, other), {})
    assert [each.reason.code for each in wrong_order.problems] == ["PartsConflict"]
