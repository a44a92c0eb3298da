"""The catalogue of faults as changes: each is valid, can be taken back, and is refused where it would not be seen."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pincompute.api.change import Break, Heal, Scale
from pincompute.api.kinds import WORKLOADS
from pincompute.api.names import BROKEN
from pincompute.api.workload import Workload
from pincompute.base.problem import Refused
from pincompute.planning.faults.catalogue import FAULTS, Fault, fitting
from pincompute.planning.people.edits import edit
from planning.people.test_edits import SPECS, later, past_of, workload

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
EACH = [(fault, kind) for fault in FAULTS for kind in fault.kinds]


def named(fault: str, silently: bool = False) -> Break:
    return Break(by="ann", fault=fault, silently=silently)


def put(fault: Fault, of: Workload) -> Workload:
    return edit(of, named(fault.name), past_of(of)).workload


def ready_for(fault: Fault, of: Any) -> Workload:
    """With what it cannot be put on otherwise."""
    if fault.name == "smaller":
        return msgspec.structs.replace(of, spec=msgspec.structs.replace(of.spec, storage="1Gi"))
    if fault.name == "lost-runtime":
        return msgspec.structs.replace(of, status=msgspec.structs.replace(of.status, runtime=1))
    return of  # type: ignore[no-any-return]


@pytest.mark.parametrize("spec", [{}, TEMPLATED], ids=["short", "template"])
@pytest.mark.parametrize(("fault", "kind"), EACH, ids=lambda each: getattr(each, "name", each))
def test_each_fault_is_a_valid_change_that_can_be_taken_back(fault: Fault, kind: str, spec: dict[str, Any]) -> None:
    before = ready_for(fault, workload(kind, generation=3, **spec))
    after = later(put(fault, before))
    assert after.spec != before.spec
    assert after.metadata.annotations[BROKEN].startswith(f"{fault.name} 3 ")
    healed = edit(after, Heal(by="ann"), past_of(before, after))
    assert healed.workload.spec == before.spec
    assert BROKEN not in healed.workload.metadata.annotations
    assert healed.said[0] == f"is healed of {fault.name}, and again what hello@3 was"


def test_every_kind_that_runs_on_has_faults_with_and_without_programs() -> None:
    assert len({each.name for each in FAULTS}) == len(FAULTS) >= 25
    for kind in SPECS:
        fewer = len(fitting(workload(kind, simulated=True)))
        # No program trains on a node that is simulated.
        assert len(fitting(workload(kind))) > fewer >= (kind != "PinterestTrainingJob")


def test_what_somebody_changed_since_is_not_put_back() -> None:
    before = workload("PinterestService")
    broken = later(put(FAULTS[0], before))
    changed = later(edit(broken, Scale(copies=3)).workload)
    told = edit(changed, Heal(), past_of(before, broken, changed))
    assert told.workload is changed
    assert told.said == ("needs no healing: it was changed since it was broken",)
    assert edit(before, Heal()).said == ("needs no healing: nobody broke it",)
    # And it can be broken once more.
    assert edit(changed, named("no-node"), past_of(changed)).workload.spec != changed.spec
    with pytest.raises(Refused, match="changes nothing"):
        edit(changed, named("wrong-tag"), past_of(changed))


def test_what_cannot_be_put_is_refused() -> None:
    before = workload("PinterestService", simulated=True)
    broken = later(put(next(each for each in FAULTS if each.name == "no-node"), before))
    for fault, of, words in (
        ("haunted", before, "there is no fault 'haunted'"),
        ("wrong-tag", before, "no program of it runs"),
        ("fails", before, "it is a PinterestService"),
        ("lost-runtime", before, "it has no runtime"),
        ("smaller", workload("PinterestStatefulSet"), "it stores nothing"),
        ("no-gpu", broken, "is broken already"),
    ):
        with pytest.raises(Refused, match=words):
            edit(of, named(fault), past_of(of))
    with pytest.raises(Refused, match="is not on record"):
        edit(before, named("no-node"))


def test_which_it_is_can_be_kept_from_whoever_is_to_find_out() -> None:
    before = workload("PinterestService")
    assert edit(before, named("wrong-tag", silently=True), past_of(before)).said == ("is broken",)
    said = edit(before, named("wrong-tag"), past_of(before)).said
    assert said == ("is broken on purpose: the image has no such tag", "image hello:dev -> hello:nowhere")


def test_a_tag_is_no_port() -> None:
    fault = FAULTS[0]
    for image, wrong in (
        ("a:5000/b", "a:5000/b:nowhere"),
        ("a:5000/b:1@sha256:" + "0" * 64, "a:5000/b:nowhere"),
        ("b", "b:nowhere"),
    ):
        assert put(fault, workload("PinterestService", image=image)).spec.image == wrong


def test_what_stands_in_the_template_stays_there() -> None:
    before = workload("PinterestService", **TEMPLATED)
    wrong = next(each for each in FAULTS if each.name == "wrong-command")
    own, beside = put(wrong, before).spec.template["spec"]["containers"]
    assert own["command"] == ["/no/such/program"]
    assert beside == {"name": "beside", "image": "beside:1"}


def test_all_kinds_are_ours() -> None:
    assert {kind for each in FAULTS for kind in each.kinds} <= set(WORKLOADS)
    assert all(each.reasons and msgspec.json.encode(each.name) for each in FAULTS)
