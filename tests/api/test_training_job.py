"""What of a training job is refused, and where it says so."""

from __future__ import annotations

import pytest
from kubeflow import structures, template

from pincompute.api.admission import admit
from pincompute.api.documents import read
from pincompute.api.kubeflow import dropped
from pincompute.api.kubeflow_fields import STRUCTURES
from pincompute.api.training_job import MAX_SCRIPT, PinterestTrainingJob, Role, Roles, TrainingJobSpec
from pincompute.base.problem import Refused
from pincompute.objects.content import Object

HEAD = "apiVersion: pinterest.com/v1\nkind: PinterestTrainingJob\nmetadata: {name: ranking}\nspec:\n"


LIMITED = "{spec: {containers: [{name: pytorch, resources: {limits: {cpu: 1}}}]}}"


def faults(spec: str) -> list[tuple[str, str]]:
    """Each with its field."""
    try:
        document(spec)
    except Refused as refused:
        return [(each.where.field, each.what) for each in refused.problems]
    return []


def document(spec: str) -> object:
    (found,) = read(HEAD + "".join(f"  {line}\n" for line in spec.splitlines()), "train.yaml")
    return admit(found, "me")


@pytest.mark.parametrize(
    ("spec", "field", "what"),
    [
        ("framework: jax\nimage: a:1", "spec.framework", "framework is 'jax': expected pytorch, tensorflow"),
        ("image: a:1\nroles: {ps: {}}", "spec.roles.ps", "pytorch has no ps"),
        ("framework: tensorflow\nimage: a:1\nroles: {master: {}}", "spec.roles.master", "tensorflow has no master"),
        ("image: a:1\nroles: {master: {replicas: 2}}", "spec.roles.master.replicas", "there are 2 of master"),
        ("image: a:1\nworkers: 2\nroles: {master: {replicas: 0}}", "spec.roles.master.replicas", "nobody leads"),
        (
            "framework: tensorflow\nimage: a:1\nroles: {chief: {replicas: 0}}",
            "spec.roles.chief.replicas",
            "nobody leads",
        ),
        ("image: a:1\nworkers: 2\nroles: {worker: {}}", "spec.workers", "workers and roles.worker both say"),
        ("image: a:1\nworkers: 1\nelastic: {minimum: 2, maximum: 4}", "spec.workers", "there are 1 workers"),
        (
            "image: a:1\nelastic: {minimum: 2, maximum: 4}",
            "spec.workers",
            "there are 0 workers, and elastic says 2 to 4",
        ),
        (
            "image: a:1\nroles: {worker: {replicas: 5}}\nelastic: {minimum: 2, maximum: 4}",
            "spec.roles.worker.replicas",
            "there are 5 workers",
        ),
        ("image: a:1\nworkers: 2\nelastic: {minimum: 3, maximum: 2}", "spec.elastic.minimum", "minimum is 3, and"),
        ("image: a:1\nworkers: 2\nelastic: {minimum: 2}", "spec.elastic.maximum", "maximum is missing"),
        (
            "image: a:1\nworkers: 2\nroles: {master: {}}\nelastic: {minimum: 1, maximum: 2}",
            "spec.roles.master",
            "nobody leads where elastic is said",
        ),
        (
            "framework: tensorflow\nimage: a:1\nworkers: 2\nelastic: {minimum: 1, maximum: 2}",
            "spec.elastic",
            "tensorflow cannot be elastic",
        ),
        ("image: a:1\nscript: a\ncommand: [b]", "spec.script", "script and command both say"),
        ("image: a:1\nworkers: 1001", "spec.workers", "workers is 1001"),
        ("workers: 1", "spec.image", "image is missing"),
        (
            "template: {spec: {containers: [{name: trainer, image: a:1}]}}",
            "spec.template.spec.containers",
            "no container is called 'pytorch'",
        ),
        (
            "image: a:1\ntemplate: {spec: {schedulingGroup: {podGroupName: a}}}",
            "spec.template.spec.schedulingGroup",
            "schedulingGroup cannot be used in a training job",
        ),
        (
            "image: a:1\nroles: {worker: {template: {spec: {containers: [{name: pytorch, restartPolicyRules: []}]}}}}",
            "spec.roles.worker.template.spec.containers.0.restartPolicyRules",
            "restartPolicyRules cannot be used in a training job",
        ),
        (
            f"image: a:1\nroles: {{worker: {{cpu: 2, template: {LIMITED}}}}}",
            "spec.roles.worker.cpu",
            "cpu stands here and in the template's container 'pytorch'",
        ),
        ("image: a:1\nroles: {worker: {replica: 2}}", "spec.roles.worker.replica", "there is no field 'replica'"),
        (
            "image: a:1\nscript: a\ntemplate: {spec: {containers: [{name: pytorch, command: [b]}]}}",
            "spec.script",
            "script and the command of container 'pytorch' both say",
        ),
    ],
)
def test_what_cannot_be_trained_is_told_with_its_field(spec: str, field: str, what: str) -> None:
    (found,) = faults(spec)
    assert found[0] == field
    assert found[1].startswith(what)


def test_what_is_wrong_for_every_role_is_told_once() -> None:
    assert len(faults("image: 'a b'\nworkers: 3")) == 1


def test_a_script_that_is_too_long_in_bytes() -> None:
    found = list(TrainingJobSpec(image="a:1", script="é" * (MAX_SCRIPT // 2 + 1)).faults("ranking"))
    assert [each.path for each in found] == [("script",)]
    assert "204,802 bytes" in found[0].what


def test_a_template_for_each_role_needs_no_image_for_all() -> None:
    container = "{spec: {containers: [{name: pytorch, image: a:1}]}}"
    assert faults(f"roles: {{master: {{template: {container}}}, worker: {{template: {container}}}}}") == []


@pytest.mark.parametrize(
    ("spec", "members", "leader"),
    [
        (TrainingJobSpec(), {"master": 1}, "master"),
        (TrainingJobSpec(workers=4), {"master": 1, "worker": 4}, "master"),
        (TrainingJobSpec(framework="tensorflow", workers=2), {"chief": 1, "worker": 2}, "chief"),
        (
            TrainingJobSpec(framework="tensorflow", workers=2, roles=Roles(chief=Role(replicas=0), ps=Role())),
            {"worker": 2, "ps": 1},
            "worker",
        ),
    ],
)
def test_one_leads_without_being_named(spec: TrainingJobSpec, members: dict[str, int], leader: str) -> None:
    assert {name: role.replicas for name, role in spec.members.items()} == members
    assert spec.leader == leader


def test_what_a_role_does_not_say_is_as_for_all() -> None:
    spec = TrainingJobSpec(cpu=2, memory="1Gi", gpus=4)
    assert spec.of(Role()) == spec
    ps = spec.of(Role(gpus=0, memory="8Gi"))
    assert (ps.cpu, ps.memory, ps.gpus) == (2, "8Gi", 0)


def test_the_name_has_room_for_the_last_copy() -> None:
    longest = f"{'a' * PinterestTrainingJob.MAX_NAME}-evaluator-9", f"{'a' * PinterestTrainingJob.MAX_NAME}-worker-999"
    assert max(len(each) for each in longest) <= 63


@pytest.mark.parametrize("kind", ["PyTorchJob", "TFJob"])
def test_the_fields_that_kubeflow_carries_are_those_of_its_own_definitions(kind: str) -> None:
    assert structures(template(kind)) == STRUCTURES, "next: python scripts/kubeflow.py"


def test_what_kubeflow_would_drop_is_found_however_deep() -> None:
    certificate = {"sources": [{"serviceAccountToken": {"path": "a"}}, {"podCertificate": {"keyType": "ED25519"}}]}
    spec: Object = {
        "schedulingGates": [{"name": "a"}],
        "initContainers": [{"name": "a", "restartPolicy": "Always", "restartPolicyRules": []}],
        "nodeSelector": {"any": "name"},
        "resources": {},
        "volumes": [{"name": "a", "projected": certificate}],
    }
    assert list(dropped({"metadata": {"labels": {"any": "name"}}, "spec": spec})) == [
        ("spec", "initContainers", 0, "restartPolicyRules"),
        ("spec", "resources"),
        ("spec", "volumes", 0, "projected", "sources", 1, "podCertificate"),
    ]
