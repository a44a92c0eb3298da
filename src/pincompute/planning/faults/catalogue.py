"""Catalogue of faults for `pin break`: real faults for practice, and test cases for the diagnosis.

Each fault is an ordinary change of a workload, together with the reasons that `pin why` must report for it. A fault is
put in the spec only: the cluster and the code are never tampered with, so that what users see is what they would see in
a real incident.
"""

from __future__ import annotations

from pincompute.api.workload import Hold, Workload
from pincompute.base import reasons
from pincompute.planning.faults import changes
from pincompute.planning.faults.batch_faults import BATCH_FAULTS
from pincompute.planning.faults.changes import NONEXISTENT
from pincompute.planning.faults.fault import (
    EXIT_REASONS,
    NO_CAPACITY_REASONS,
    SERVING_KINDS,
    SINGLE_TEMPLATE_KINDS,
    Fault,
    has_claims,
    has_port,
    has_runtime,
)

_FAILING_PROBE = {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1}
_MISSING_CLAIM = {"claimName": NONEXISTENT}
_UNSATISFIABLE_SPREAD = {
    "maxSkew": 1,
    "topologyKey": NONEXISTENT,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": NONEXISTENT}},
}
_MISSING_SECRET_KEY = {"name": NONEXISTENT, "key": "password"}

FAULTS: tuple[Fault, ...] = (
    Fault(
        "wrong-tag",
        "the image tag does not exist",
        (reasons.IMAGE_PULL_FAILED,),
        changes.replace_image(changes.with_missing_tag),
        SINGLE_TEMPLATE_KINDS,
        needs_containers=True,
    ),
    Fault(
        "wrong-registry",
        "the image registry is unreachable",
        (reasons.REGISTRY_UNREACHABLE, reasons.IMAGE_PULL_FAILED),
        changes.replace_image(changes.with_unreachable_registry),
        SINGLE_TEMPLATE_KINDS,
        needs_containers=True,
    ),
    Fault(
        "pull-policy-never",
        "the pull policy is Never, and no node has the image",
        (reasons.IMAGE_PULL_FAILED,),
        changes.in_sequence(
            changes.replace_image(changes.with_missing_tag), changes.patch_container(imagePullPolicy="Never")
        ),
        needs_containers=True,
    ),
    Fault(
        "wrong-command",
        "the command does not exist in the image",
        (reasons.COMMAND_NOT_FOUND, reasons.TASK_FAILED),
        changes.run_command("/no/such/program"),
        SINGLE_TEMPLATE_KINDS,
        needs_containers=True,
    ),
    Fault(
        "exits-immediately",
        "the program exits immediately with code 0",
        EXIT_REASONS,
        changes.run_command("sh", "-c", "exit 0"),
        needs_containers=True,
    ),
    Fault(
        "crashes",
        "the program fails after a second",
        EXIT_REASONS,
        changes.run_command("sh", "-c", "sleep 1; echo the index is torn; exit 3"),
        needs_containers=True,
    ),
    Fault(
        "oom",
        "the program exceeds its memory limit",
        (reasons.OUT_OF_MEMORY,),
        changes.in_sequence(
            changes.run_command("dd", "if=/dev/zero", "of=/dev/null", "bs=50000000", "count=1"),
            changes.request_resources(memory="32Mi"),
        ),
        SINGLE_TEMPLATE_KINDS,
        needs_containers=True,
    ),
    Fault(
        "read-only-filesystem",
        "the program writes to a read-only file system",
        EXIT_REASONS,
        changes.in_sequence(
            changes.run_command("sh", "-c", "echo x > /tmp/x"),
            changes.patch_security_context(readOnlyRootFilesystem=True),
        ),
        needs_containers=True,
    ),
    Fault(
        "wrong-port",
        "the readiness probe checks a port on which nothing listens",
        (reasons.PORT_NOT_LISTENING,),
        changes.patch_container(readinessProbe={"tcpSocket": {"port": 9}, "periodSeconds": 1}),
        SERVING_KINDS,
        needs_containers=True,
    ),
    Fault(
        "wrong-path",
        "the health check requests a path that does not exist",
        (reasons.HEALTH_CHECK_FAILED,),
        changes.break_health_check,
        ("PinterestService",),
        needs_containers=True,
        applies_to=has_port,
        inapplicable_reason="a worker has no health check",
    ),
    Fault(
        "readiness-failing",
        "the readiness probe fails",
        (reasons.PROBE_FAILED,),
        changes.patch_container(readinessProbe=_FAILING_PROBE),
        needs_containers=True,
    ),
    Fault(
        "liveness-failing",
        "the liveness probe fails and kills the program",
        (reasons.PROBE_FAILED,),
        changes.patch_container(livenessProbe=_FAILING_PROBE),
        needs_containers=True,
    ),
    Fault(
        "startup-failing",
        "the startup probe fails",
        (reasons.PROBE_FAILED,),
        changes.patch_container(startupProbe=_FAILING_PROBE),
        needs_containers=True,
    ),
    Fault(
        "init-container-fails",
        "an init container fails",
        EXIT_REASONS,
        changes.add_init_container("migrate", "sh", "-c", "echo no such table; exit 4"),
        needs_containers=True,
    ),
    Fault(
        "missing-configmap",
        "the environment refers to a ConfigMap that does not exist",
        (reasons.CONFIGURATION_MISSING,),
        changes.patch_container(envFrom=[{"configMapRef": {"name": NONEXISTENT}}]),
        needs_containers=True,
    ),
    Fault(
        "missing-secret",
        "an environment variable refers to a Secret that does not exist",
        (reasons.CONFIGURATION_MISSING,),
        changes.add_variable(secretKeyRef=_MISSING_SECRET_KEY),
        needs_containers=True,
    ),
    Fault(
        "missing-secret-volume",
        "a volume refers to a Secret that does not exist",
        (reasons.CONFIGURATION_MISSING,),
        changes.add_volume(secret={"secretName": NONEXISTENT}),
        needs_containers=True,
    ),
    Fault(
        "runs-as-root",
        "the program runs as root, which is not allowed",
        (reasons.RUNS_AS_ROOT, reasons.POD_SECURITY),
        changes.patch_security_context(runAsUser=0, runAsNonRoot=True),
        needs_containers=True,
    ),
    Fault(
        "privileged",
        "the container is privileged",
        (reasons.POD_SECURITY,),
        changes.patch_security_context(privileged=True),
        SERVING_KINDS,
    ),
    Fault(
        "too-much-cpu",
        "no node has as much CPU as requested",
        NO_CAPACITY_REASONS,
        changes.request_resources(cpu="4000"),
        SINGLE_TEMPLATE_KINDS,
    ),
    Fault(
        "too-much-memory",
        "no node has as much memory as requested",
        NO_CAPACITY_REASONS,
        changes.request_resources(memory="900Ti"),
        SINGLE_TEMPLATE_KINDS,
    ),
    Fault("no-gpu", "no node has the requested GPUs", NO_CAPACITY_REASONS, changes.set_fields(gpus=8)),
    Fault(
        "too-much-ephemeral-storage",
        "no node has as much ephemeral storage as requested",
        # A project limits what one container may use.
        (*NO_CAPACITY_REASONS, reasons.POD_REJECTED),
        changes.patch_container(resources={"requests": {"ephemeral-storage": "900Ti"}}),
    ),
    Fault(
        "unmatched-node-selector",
        "no node has the label of the node selector",
        (reasons.NO_NODE_MATCHES,),
        changes.patch_pod(nodeSelector={"disk": NONEXISTENT}),
        SERVING_KINDS,
    ),
    Fault(
        "unmatched-node-affinity",
        "no node matches the node affinity",
        (reasons.NO_NODE_MATCHES,),
        changes.patch_pod(affinity=changes.required_node_affinity(NONEXISTENT)),
        SERVING_KINDS,
    ),
    Fault(
        "missing-claim",
        "a volume refers to a claim that does not exist",
        (reasons.CLAIM_NOT_BOUND,),
        changes.add_volume(persistentVolumeClaim=_MISSING_CLAIM),
        SERVING_KINDS,
    ),
    Fault(
        "readiness-gate-closed",
        "a readiness gate is never opened",
        (reasons.READINESS_GATE_CLOSED,),
        changes.patch_pod(readinessGates=[{"conditionType": "example.com/never-opened"}]),
        SERVING_KINDS,
        needs_containers=True,
    ),
    Fault(
        "missing-runtime-class",
        "the container runtime class does not exist",
        (reasons.POD_REJECTED, reasons.ADMISSION_DENIED),
        changes.patch_pod(runtimeClassName=NONEXISTENT),
        ("PinterestService",),
    ),
    Fault(
        "missing-storage-class",
        "the storage class does not exist",
        (reasons.CLAIM_NOT_BOUND,),
        changes.add_claim_of_unknown_class,
        ("PinterestStatefulSet",),
    ),
    Fault(
        "host-path",
        "a volume mounts a directory of the node",
        (reasons.POD_SECURITY,),
        changes.add_volume(hostPath={"path": "/etc"}),
        SERVING_KINDS,
    ),
    Fault(
        "unmatched-affinity",
        "no pod matches the pod affinity",
        (reasons.NO_NODE_MATCHES,),
        changes.patch_pod(affinity=changes.required_pod_affinity(NONEXISTENT)),
        SERVING_KINDS,
    ),
    Fault(
        "topology-unsatisfiable",
        "no node has the topology key of the spread constraint",
        (reasons.NO_NODE_MATCHES,),
        changes.patch_pod(topologySpreadConstraints=[_UNSATISFIABLE_SPREAD]),
        SERVING_KINDS,
    ),
    Fault(
        "post-start-hook-fails",
        "the postStart hook fails",
        (reasons.START_FAILED, *EXIT_REASONS, reasons.KILLED),
        changes.patch_container(lifecycle={"postStart": {"exec": {"command": ["false"]}}}),
        needs_containers=True,
    ),
    Fault("left-paused", "the rollout was paused and never resumed", (reasons.PAUSED,), changes.pause_and_change),
    Fault(
        "missing-volume",
        "a container mounts a volume that the pod does not have",
        (reasons.CLUSTER_REFUSED,),
        changes.patch_container(volumeMounts=[{"name": NONEXISTENT, "mountPath": "/nowhere"}]),
    ),
    Fault(
        "invalid-value",
        "a field has a value that Kubernetes does not know",
        (reasons.CLUSTER_REFUSED,),
        changes.patch_container(imagePullPolicy="Perhaps"),
    ),
    Fault(
        "missing-node",
        "the pod names a node that does not exist",
        # In a project a policy denies it.
        (reasons.NO_NODE_MATCHES, reasons.ADMISSION_DENIED),
        changes.patch_pod(nodeName=NONEXISTENT),
        ("PinterestService",),
    ),
    Fault(
        "shrunk-storage",
        "the storage is smaller than before",
        (reasons.CANNOT_CHANGE,),
        changes.shrink_claims,
        ("PinterestStatefulSet",),
        applies_to=has_claims,
        inapplicable_reason="it has no storage",
    ),
    Fault(
        "missing-runtime",
        "the workload is pinned to a runtime that does not exist",
        (reasons.HELD_RUNTIME_MISSING,),
        changes.set_fields(hold=Hold(999_999, "2999-12-31", "an old incident")),
        applies_to=has_runtime,
        inapplicable_reason="it has no runtime",
    ),
    *BATCH_FAULTS,
)
FAULTS_BY_NAME = {each.name: each for each in FAULTS}
_FORMER_NAMES = {
    "never-fetched": "pull-policy-never",
    "ends-at-once": "exits-immediately",
    "hungry": "oom",
    "read-only": "read-only-filesystem",
    "never-ready": "readiness-failing",
    "killed": "liveness-failing",
    "never-started": "startup-failing",
    "first-fails": "init-container-fails",
    "no-configuration": "missing-configmap",
    "no-secret": "missing-secret",
    "no-keys": "missing-secret-volume",
    "as-root": "runs-as-root",
    "no-disk": "too-much-ephemeral-storage",
    "no-node": "unmatched-node-selector",
    "no-zone": "unmatched-node-affinity",
    "no-claim": "missing-claim",
    "closed-gate": "readiness-gate-closed",
    "no-runtime-class": "missing-runtime-class",
    "no-storage": "missing-storage-class",
    "on-the-node": "host-path",
    "no-friend": "unmatched-affinity",
    "uneven": "topology-unsatisfiable",
    "hook-fails": "post-start-hook-fails",
    "forgotten": "left-paused",
    "no-such-volume": "missing-volume",
    "misspelled": "invalid-value",
    "on-no-node": "missing-node",
    "smaller": "shrunk-storage",
    "lost-runtime": "missing-runtime",
    "fails": "task-fails",
    "too-short": "deadline-too-short",
    "task-too-short": "task-deadline-too-short",
    "run-cannot-begin": "run-wrong-command",
    "run-has-no-image": "run-wrong-tag",
    "run-too-long": "run-deadline-too-short",
    "run-has-no-room": "run-unschedulable",
    "copy-fails": "replica-fails",
    "copy-cannot-begin": "replica-wrong-command",
    "copies-hungry": "replica-oom",
    "never-together": "gang-unschedulable",
}
"""Names of the previous release. They are accepted, but not listed; remove them with the next release."""


def find_fault(name: str) -> Fault | None:
    return FAULTS_BY_NAME.get(_FORMER_NAMES.get(name, name))


def applicable_faults(workload: Workload) -> tuple[Fault, ...]:
    """The faults that `pin why` could report for this workload."""
    return tuple(each for each in FAULTS if each.is_applicable(workload))
