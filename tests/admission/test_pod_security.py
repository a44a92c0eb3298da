"""Pods that a project's level of Pod Security forbids are refused at submission, with the edit that ends it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pincompute.admission.pod_security import check_pod_security
from pincompute.api.project import Project
from pincompute.base.reasons import POD_SECURITY
from runtime_builders import build_resource

RESTRICTED: dict[str, Any] = {"owner": "ann", "quota": {"on-demand": {}}}
PRIVILEGED: dict[str, Any] = {"owner": "ann", "quota": {"on-demand": {}, "infrastructure": {}}}


def project_with(spec: dict[str, Any]) -> Project:
    return msgspec.convert({"metadata": {"name": "ads"}, "spec": spec}, Project)


def workload_with_pod(pod: dict[str, Any], kind: str = "PinterestService", **fields: Any) -> Any:
    short_form = {"image": "web:1", "port": 80} if kind == "PinterestService" else {"image": "web:1"}
    spec = {**short_form, **({"template": {"spec": pod}} if pod else {}), **fields}
    return build_resource({"kind": kind, "metadata": {"name": "web", "project": "ads"}, "spec": spec})


@pytest.mark.parametrize(
    ("pod", "rule", "next_"),
    [
        (
            {"securityContext": {"runAsNonRoot": False}},
            "runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false)",
            "--remove template.spec.securityContext.runAsNonRoot",
        ),
        (
            # The platform adds runAsNonRoot: false to a user that is root.
            {"securityContext": {"runAsUser": 0}},
            "runAsUser=0 (pod must not set runAsUser=0)",
            "--remove template.spec.securityContext.runAsUser",
        ),
        (
            {"volumes": [{"name": "run", "hostPath": {"path": "/run"}}],
             "containers": [{"name": "web", "volumeMounts": [{"name": "run", "mountPath": "/run"}]}]},
            'restricted volume types (volume "run" uses restricted volume type "hostPath")',
            "--remove 'template.spec.containers[web].volumeMounts[run]' --remove 'template.spec.volumes[run]'",
        ),
        (
            {"containers": [{"name": "side", "image": "s", "ports": [{"containerPort": 1, "hostPort": 9}]}]},
            'hostPort (container "side" uses hostPort 9)',
            "--remove 'template.spec.containers[side].ports[0].hostPort'",
        ),
    ],
)  # fmt: skip
def test_forbidden_pod_is_refused_with_the_edit_that_ends_it(pod: dict[str, Any], rule: str, next_: str) -> None:
    problem = check_pod_security(workload_with_pod(pod), project_with(RESTRICTED))
    assert problem is not None
    assert problem.reason is POD_SECURITY
    assert problem.note.startswith('violates PodSecurity "restricted:latest": ')
    assert rule in problem.note
    assert problem.next == f"pin edit web {next_}"
    assert check_pod_security(workload_with_pod(pod), project_with(PRIVILEGED)) is None
    assert check_pod_security(workload_with_pod(pod), None) is None


def test_settings_of_the_platform_are_allowed() -> None:
    assert check_pod_security(workload_with_pod({}), project_with(RESTRICTED)) is None
    init = {"initContainers": [{"name": "first", "image": "first:1"}]}
    assert check_pod_security(workload_with_pod(init), project_with(RESTRICTED)) is None


def test_every_role_of_a_training_job_is_checked() -> None:
    roles = {"worker": {"replicas": 1, "template": {"spec": {"hostIPC": True}}}}
    problem = check_pod_security(workload_with_pod({}, "PinterestTrainingJob", roles=roles), project_with(RESTRICTED))
    assert problem is not None
    assert "host namespaces (hostIPC=true)" in problem.note
