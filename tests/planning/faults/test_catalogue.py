"""The fault catalogue: each fault is a valid change, can be reverted, and is rejected where it has no effect."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pincompute.api.change import Break, Heal, Scale
from pincompute.api.kinds import WORKLOADS
from pincompute.api.names import INJECTED_FAULT_ANNOTATION
from pincompute.api.workload import Workload
from pincompute.base.problem import Refused
from pincompute.planning.edits import apply_change
from pincompute.planning.faults.catalogue import FAULTS, Fault, applicable_faults, find_fault
from pincompute.planning.revision_number import expected_revision, revision_content
from planning.test_edits import SPECS, later, past_of, workload

TEMPLATED: dict[str, Any] = {
    "image": "",
    "template": {
        "spec": {
            "containers": [
                {
                    "name": "own",
                    "image": "registry.example.com:5000/team/hello:1.2",
                    "command": ["serve"],
                    "args": ["--fast"],
                    "resources": {"limits": {"memory": "1Gi"}, "requests": {"cpu": "1"}},
                    "securityContext": {"runAsUser": 7},
                },
                {"name": "beside", "image": "beside:1"},
            ]
        }
    },
}
FAULTS_AND_KINDS = [(fault, kind) for fault in FAULTS for kind in fault.kinds]


def break_with(fault: str, silently: bool = False) -> Break:
    return Break(by="ann", fault=fault, silently=silently)


def inject(fault: Fault, of: Workload) -> Workload:
    return apply_change(of, break_with(fault.name), past_of(of)).workload


def with_prerequisites(fault: Fault, of: Any) -> Workload:
    """The workload with the storage or the runtime that some faults require."""
    if fault.name == "shrunk-storage":
        spec = msgspec.structs.replace(of.spec, storage="1Gi")
        content = revision_content(spec) if of.status.content else ""
        return msgspec.structs.replace(of, spec=spec, status=msgspec.structs.replace(of.status, content=content))
    if fault.name == "missing-runtime":
        return msgspec.structs.replace(of, status=msgspec.structs.replace(of.status, runtime=1))
    return of  # type: ignore[no-any-return]


@pytest.mark.parametrize("spec", [{}, TEMPLATED], ids=["short", "template"])
@pytest.mark.parametrize(("fault", "kind"), FAULTS_AND_KINDS, ids=lambda each: getattr(each, "name", each))
def test_fault_is_a_valid_change_and_can_be_reverted(fault: Fault, kind: str, spec: dict[str, Any]) -> None:
    before = with_prerequisites(fault, workload(kind, generation=3, **spec))
    number = expected_revision(before).number
    after = later(inject(fault, before))
    assert after.spec != before.spec
    assert after.metadata.annotations[INJECTED_FAULT_ANNOTATION].startswith(f"{fault.name} {number} ")
    healed = apply_change(after, Heal(by="ann"), past_of(before, after))
    assert healed.workload.spec == before.spec
    assert INJECTED_FAULT_ANNOTATION not in healed.workload.metadata.annotations
    assert healed.effects[0] == f"fault {fault.name} removed, rolled back to hello@{number}"


def test_every_kind_has_faults_with_and_without_containers() -> None:
    assert len({each.name for each in FAULTS}) == len(FAULTS) >= 25
    for kind in SPECS:
        fewer = len(applicable_faults(workload(kind, simulated=True)))
        # All faults of training need containers.
        assert len(applicable_faults(workload(kind))) > fewer >= (kind != "PinterestTrainingJob")


def test_heal_keeps_later_changes() -> None:
    before = workload("PinterestService")
    broken = later(inject(FAULTS[0], before))
    changed = later(apply_change(broken, Scale(replicas=3)).workload)
    result = apply_change(changed, Heal(), past_of(before, broken, changed))
    assert result.workload is changed
    assert result.effects == ("no fault to remove: the workload was changed since the fault was injected",)
    assert apply_change(before, Heal()).effects == ("no fault to remove: none was injected",)
    # Another fault can be injected afterwards.
    assert apply_change(changed, break_with("unmatched-node-selector"), past_of(changed)).workload.spec != changed.spec
    with pytest.raises(Refused, match="does not change"):
        apply_change(changed, break_with("wrong-tag"), past_of(changed))


def test_rejects_inapplicable_fault() -> None:
    before = workload("PinterestService", simulated=True)
    broken = later(inject(next(each for each in FAULTS if each.name == "unmatched-node-selector"), before))
    for fault, of, words in (
        ("haunted", before, "no fault 'haunted'"),
        ("wrong-tag", before, "simulated workloads run no containers"),
        ("task-fails", before, "it is a PinterestService"),
        ("missing-runtime", before, "it has no runtime"),
        ("shrunk-storage", workload("PinterestStatefulSet"), "it has no storage"),
        ("no-gpu", broken, "already has an injected fault"),
    ):
        with pytest.raises(Refused, match=words):
            apply_change(of, break_with(fault), past_of(of))
    with pytest.raises(Refused, match="is not recorded yet"):
        apply_change(before, break_with("unmatched-node-selector"))


def test_silent_fault_is_not_named() -> None:
    before = workload("PinterestService")
    assert apply_change(before, break_with("wrong-tag", silently=True), past_of(before)).effects == ("fault injected",)
    effects = apply_change(before, break_with("wrong-tag"), past_of(before)).effects
    assert effects == ("fault injected: the image tag does not exist", "image hello:dev -> hello:nowhere")


def test_port_of_the_registry_is_not_a_tag() -> None:
    fault = FAULTS[0]
    for image, wrong in (
        ("a:5000/b", "a:5000/b:nowhere"),
        ("a:5000/b:1@sha256:" + "0" * 64, "a:5000/b:nowhere"),
        ("b", "b:nowhere"),
    ):
        assert inject(fault, workload("PinterestService", image=image)).spec.image == wrong


def test_fields_of_the_template_stay_in_the_template() -> None:
    before = workload("PinterestService", **TEMPLATED)
    wrong = next(each for each in FAULTS if each.name == "wrong-command")
    own, beside = inject(wrong, before).spec.template["spec"]["containers"]
    assert own["command"] == ["/no/such/program"]
    assert beside == {"name": "beside", "image": "beside:1"}


def test_faults_are_of_known_kinds_and_name_a_reason() -> None:
    assert {kind for each in FAULTS for kind in each.kinds} <= set(WORKLOADS)
    assert all(each.expected_reasons and msgspec.json.encode(each.name) for each in FAULTS)


def test_accepts_names_of_the_previous_release_without_listing_them() -> None:
    for former, name in (("hungry", "oom"), ("no-friend", "unmatched-affinity"), ("uneven", "topology-unsatisfiable")):
        fault = find_fault(former)
        assert fault
        assert fault.name == name
        assert former not in {each.name for each in FAULTS}
    before = workload("PinterestService")
    after = apply_change(before, break_with("no-node"), past_of(before)).workload
    assert after.metadata.annotations[INJECTED_FAULT_ANNOTATION].startswith("unmatched-node-selector ")
