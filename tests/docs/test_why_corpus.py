"""The corpus of `pin why`: every case can be submitted, and the page shows the saved figures."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from typing import Any, cast

import msgspec
import pytest
import yaml
from bench.fault_catalogue import document
from bench.why.corpus import HALVES, Case, Fault, PodState, read_faults, read_healthy_states
from bench.why.edits import edited_fields
from bench.why.page import OPSBENCH_FILE, PAGE, render_page
from bench.why.pod_status import pod_status
from bench.why.run import MEASURED_FILE
from bench.why.scene import workload_fields

from pincompute.api.documents import read_document
from pincompute.api.validation import parse_workload
from pincompute.base.reasons.reason import REASONS
from pincompute.planning.observed_pods import PodStatus

CASES = (*read_faults(), *read_healthy_states())


def _fault(case: Case) -> Fault:
    return cast("Fault", case.script)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case_can_be_submitted(case: Case) -> None:
    text = document(case.name, False, **workload_fields(case, "me"))
    parse_workload(read_document(text), "me")


def test_corpus_has_200_faults_and_60_healthy_states_with_names_of_their_own() -> None:
    assert len(read_faults()) >= 200
    assert len(read_healthy_states()) >= 60
    assert [name for name, count in Counter(each.name for each in CASES).items() if count > 1] == []


def test_halves_are_even() -> None:
    sizes = Counter(each.half for each in read_faults())
    assert set(sizes) == set(HALVES)
    assert min(sizes.values()) > 0.4 * len(read_faults())


def test_faults_name_a_source_a_known_reason_and_a_type_of_cloud_opsbench() -> None:
    types = {name for group in yaml.safe_load(OPSBENCH_FILE.read_text())["types"].values() for name in group}
    for case in read_faults():
        fault = _fault(case)
        assert case.source.startswith("http"), case.name
        assert fault.reason in REASONS, case.name
        assert fault.opsbench in {"", *types}, case.name
        assert fault.tells, case.name


@pytest.mark.parametrize(
    ("next_", "fields"),
    [
        ("request at most 31.9 cpu and 3Gi memory in the file, or: x", {"cpu": "31.9", "memory": "3Gi"}),
        ("set at most 8Mi memory in the file, or ask for other bounds", {"memory": "8Mi"}),
        ("remove pool from nodeSelector in the file, or ask for nodes", {"template": {"volumes": [{"name": "data"}]}}),
        ("remove volume data from spec.template", {"template": {"nodeSelector": {"pool": "a"}}}),
        ("remove gpus in the file", {"gpus": None}),
        ("leave out loadBalancer.class", {"loadBalancer": None}),
        ("tell the infrastructure team", None),
    ],
)
def test_types_the_edits_that_answers_propose(next_: str, fields: dict[str, Any] | None) -> None:
    before = {
        "gpus": 1,
        "loadBalancer": {"class": "x"},
        "template": {"nodeSelector": {"pool": "a"}, "volumes": [{"name": "data"}]},
    }
    after = {key: value for key, value in {**before, **(fields or {})}.items() if value is not None}
    assert edited_fields(before, next_) == (after if fields else None)


def test_faults_of_programs_and_of_the_platform_are_not_curable() -> None:
    curable = {each.name for each in read_faults() if _fault(each).is_curable}
    assert {"new-version-that-needs-more-memory", "secret-that-does-not-exist", "misspelt-node-label"} <= curable
    assert not {"wrong-password-of-the-database", "operator-that-is-stopped", "disk-pressure"} & curable


def test_page_shows_the_saved_figures() -> None:
    assert PAGE.read_text() == render_page(json.loads(MEASURED_FILE.read_text()))


@pytest.mark.parametrize(
    ("state", "restart_policy", "phase", "waiting"),
    [
        (PodState(), "Always", "Running", ""),
        (PodState(), "Never", "Succeeded", ""),
        (PodState(exit=1, times=3), "Always", "Running", "CrashLoopBackOff"),
        (PodState(exit=1), "Never", "Failed", ""),
        (PodState(waiting="ErrImagePull"), "Always", "Pending", "ErrImagePull"),
        (PodState(failed="Evicted"), "Always", "Failed", ""),
    ],
)
def test_scripted_kubelet_reports_a_state_as_a_kubelet_does(
    state: PodState, restart_policy: str, phase: str, waiting: str
) -> None:
    pod = {"spec": {"restartPolicy": restart_policy, "containers": [{"name": "web", "image": "web:1"}]}}
    status = msgspec.convert(pod_status(pod, state, datetime(2026, 1, 1, tzinfo=UTC)), PodStatus)
    assert status.phase == phase
    reasons = [each.state.waiting.reason for each in status.container_statuses if each.state.waiting]
    assert reasons == ([waiting] if waiting else [])
