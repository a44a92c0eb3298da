"""Validation of PinterestTrainingJob."""

from __future__ import annotations

import pytest
from generate_kubeflow_fields import structures, template

from pincompute.api.documents import read_documents
from pincompute.api.kubeflow import unsupported_fields
from pincompute.api.kubeflow_fields import POD_STRUCTURES
from pincompute.api.training_job import (
    MAX_SCRIPT_BYTES,
    PinterestTrainingJob,
    TrainingJobSpec,
    TrainingRole,
    TrainingRoles,
)
from pincompute.api.validation import parse_resource
from pincompute.base.problem import Refused
from pincompute.objects.content import Object

HEAD = "apiVersion: pinterest.com/v1\nkind: PinterestTrainingJob\nmetadata: {name: ranking}\nspec:\n"


LIMITED = "{spec: {containers: [{name: pytorch, resources: {limits: {cpu: 1}}}]}}"


def errors_of(spec: str) -> list[tuple[str, str]]:
    """Field and message of each error."""
    try:
        parsed_training_job(spec)
    except Refused as refused:
        return [(each.where.field, each.what) for each in refused.problems]
    return []


def parsed_training_job(spec: str) -> object:
    (found,) = read_documents(HEAD + "".join(f"  {line}\n" for line in spec.splitlines()), "train.yaml")
    return parse_resource(found, "me")


@pytest.mark.parametrize(
    ("spec", "field", "what"),
    [
        ("framework: jax\nimage: a:1", "spec.framework", "framework is 'jax': expected pytorch, tensorflow"),
        ("image: a:1\nroles: {ps: {}}", "spec.roles.ps", "pytorch has no role ps"),
        (
            "framework: tensorflow\nimage: a:1\nroles: {master: {}}",
            "spec.roles.master",
            "tensorflow has no role master",
        ),
        ("image: a:1\nroles: {master: {replicas: 2}}", "spec.roles.master.replicas", "master has 2 replicas"),
        ("image: a:1\nworkers: 2\nroles: {master: {replicas: 0}}", "spec.roles.master.replicas", "there is no leader"),
        (
            "framework: tensorflow\nimage: a:1\nroles: {chief: {replicas: 0}}",
            "spec.roles.chief.replicas",
            "there is no leader",
        ),
        (
            "image: a:1\nworkers: 2\nroles: {worker: {}}",
            "spec.workers",
            "workers and roles.worker cannot be used together",
        ),
        ("image: a:1\nworkers: 1\nelastic: {minimum: 2, maximum: 4}", "spec.workers", "there are 1 workers"),
        (
            "image: a:1\nelastic: {minimum: 2, maximum: 4}",
            "spec.workers",
            "there are 0 workers, but elastic allows 2 to 4",
        ),
        (
            "image: a:1\nroles: {worker: {replicas: 5}}\nelastic: {minimum: 2, maximum: 4}",
            "spec.roles.worker.replicas",
            "there are 5 workers",
        ),
        ("image: a:1\nworkers: 2\nelastic: {minimum: 3, maximum: 2}", "spec.elastic.minimum", "minimum 3 is larger"),
        ("image: a:1\nworkers: 2\nelastic: {minimum: 2}", "spec.elastic.maximum", "maximum is missing"),
        (
            "image: a:1\nworkers: 2\nroles: {master: {}}\nelastic: {minimum: 1, maximum: 2}",
            "spec.roles.master",
            "an elastic job has no master",
        ),
        (
            "framework: tensorflow\nimage: a:1\nworkers: 2\nelastic: {minimum: 1, maximum: 2}",
            "spec.elastic",
            "elastic requires pytorch, but framework is tensorflow",
        ),
        ("image: a:1\nscript: a\ncommand: [b]", "spec.script", "script and command cannot be used together"),
        ("image: a:1\nworkers: 1001", "spec.workers", "workers is 1001"),
        ("workers: 1", "spec.image", "image is missing"),
        (
            "template: {spec: {containers: [{name: trainer, image: a:1}]}}",
            "spec.template.spec.containers",
            "the template has no container 'pytorch'",
        ),
        (
            "image: a:1\ntemplate: {spec: {schedulingGroup: {podGroupName: a}}}",
            "spec.template.spec.schedulingGroup",
            "schedulingGroup is not supported in a training job",
        ),
        (
            "image: a:1\nroles: {worker: {template: {spec: {containers: [{name: pytorch, restartPolicyRules: []}]}}}}",
            "spec.roles.worker.template.spec.containers.0.restartPolicyRules",
            "restartPolicyRules is not supported in a training job",
        ),
        (
            f"image: a:1\nroles: {{worker: {{cpu: 2, template: {LIMITED}}}}}",
            "spec.roles.worker.cpu",
            "cpu is set here and in the template's container 'pytorch'",
        ),
        ("image: a:1\nroles: {worker: {replica: 2}}", "spec.roles.worker.replica", "unknown field 'replica'"),
        (
            "image: a:1\nscript: a\ntemplate: {spec: {containers: [{name: pytorch, command: [b]}]}}",
            "spec.script",
            "script and the command of container 'pytorch' cannot be used together",
        ),
    ],
)
def test_rejects_invalid_training_job_spec(spec: str, field: str, what: str) -> None:
    (found,) = errors_of(spec)
    assert found[0] == field
    assert found[1].startswith(what)


def test_reports_error_of_all_roles_once() -> None:
    assert len(errors_of("image: 'a b'\nworkers: 3")) == 1


def test_rejects_script_over_maximum_bytes() -> None:
    found = list(TrainingJobSpec(image="a:1", script="é" * (MAX_SCRIPT_BYTES // 2 + 1)).field_errors("ranking"))
    assert [each.path for each in found] == [("script",)]
    assert "204,802 bytes" in found[0].what


def test_accepts_templates_without_common_image() -> None:
    container = "{spec: {containers: [{name: pytorch, image: a:1}]}}"
    assert errors_of(f"roles: {{master: {{template: {container}}}, worker: {{template: {container}}}}}") == []


@pytest.mark.parametrize(
    ("spec", "members", "leader"),
    [
        (TrainingJobSpec(), {"master": 1}, "master"),
        (TrainingJobSpec(workers=4), {"master": 1, "worker": 4}, "master"),
        (TrainingJobSpec(framework="tensorflow", workers=2), {"chief": 1, "worker": 2}, "chief"),
        (
            TrainingJobSpec(
                framework="tensorflow",
                workers=2,
                roles=TrainingRoles(chief=TrainingRole(replicas=0), ps=TrainingRole()),
            ),
            {"worker": 2, "ps": 1},
            "worker",
        ),
    ],
)
def test_leader_by_default(spec: TrainingJobSpec, members: dict[str, int], leader: str) -> None:
    assert {name: role.replicas for name, role in spec.active_roles.items()} == members
    assert spec.leader == leader


def test_role_inherits_settings_of_job() -> None:
    spec = TrainingJobSpec(cpu=2, memory="1Gi", gpus=4)
    assert spec.for_role(TrainingRole()) == spec
    ps = spec.for_role(TrainingRole(gpus=0, memory="8Gi"))
    assert (ps.cpu, ps.memory, ps.gpus) == (2, "8Gi", 0)


def test_replica_names_fit_limits() -> None:
    longest = (
        f"{'a' * PinterestTrainingJob.MAX_NAME_LENGTH}-evaluator-9",
        f"{'a' * PinterestTrainingJob.MAX_NAME_LENGTH}-worker-999",
    )
    assert max(len(each) for each in longest) <= 63


@pytest.mark.parametrize("kind", ["PyTorchJob", "TFJob"])
def test_pod_structures_match_kubeflow_crds(kind: str) -> None:
    assert structures(template(kind)) == POD_STRUCTURES, "next: python scripts/generate_kubeflow_fields.py"


def test_finds_unsupported_fields_at_any_depth() -> None:
    certificate = {"sources": [{"serviceAccountToken": {"path": "a"}}, {"podCertificate": {"keyType": "ED25519"}}]}
    spec: Object = {
        "schedulingGates": [{"name": "a"}],
        "initContainers": [{"name": "a", "restartPolicy": "Always", "restartPolicyRules": []}],
        "nodeSelector": {"any": "name"},
        "resources": {},
        "volumes": [{"name": "a", "projected": certificate}],
    }
    assert list(unsupported_fields({"metadata": {"labels": {"any": "name"}}, "spec": spec})) == [
        ("spec", "initContainers", 0, "restartPolicyRules"),
        ("spec", "resources"),
        ("spec", "volumes", 0, "projected", "sources", 1, "podCertificate"),
    ]
