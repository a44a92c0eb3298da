"""Reasons of batch, periodic and training work."""

from __future__ import annotations

from pincompute.base.reasons.reason import info, infrastructure_error, user_error

TASK_FAILED = user_error(
    "TaskFailed", 422, "A task failed in every attempt.", "Read its exit code and last line; then `pin rerun NAME`."
)
DEADLINE_EXCEEDED = user_error(
    "DeadlineExceeded", 504, "The work did not finish before its deadline.", "Raise the deadline, or the parallelism."
)
TOO_MANY_FAILED = user_error(
    "TooManyFailed",
    422,
    "More tasks failed than `maxFailed` allows, and the others were stopped.",
    "Fix the cause of the failures, then `pin rerun NAME`.",
)
CANCELLED = info(
    "Cancelled",
    "A user has ended a batch or a training job; what had finished keeps its results.",
    "`pin rerun NAME` runs what has not finished.",
)
REPLICA_FAILED = user_error(
    "ReplicaFailed",
    422,
    "A replica of a training job failed, and its role is not retried.",
    "Read its exit code and last line; then raise `attempt` in the file to start again.",
)
REPLICA_LOST = infrastructure_error(
    "ReplicaLost",
    409,
    "A replica of a training job was deleted before it finished, and was not recreated.",
    "Raise `attempt` in the file to start again, or set `success: leader`.",
)
GANG_INCOMPLETE = infrastructure_error(
    "GangIncomplete",
    503,
    "Not all replicas of a gang exist yet; they start together.",
    "The message lists the missing ones; a used-up quota is the usual cause.",
)
GANG_PARTIALLY_SCHEDULED = infrastructure_error(
    "GangPartiallyScheduled",
    503,
    "Some replicas of a training job have a node, and no node has capacity for the others.",
    "Request less, or more nodes; `suspended` releases the resources it holds meanwhile.",
)
KUBEFLOW_NOT_RESPONDING = infrastructure_error(
    "KubeflowNotResponding",
    503,
    "No controller processes the training job: Kubeflow's training operator is not installed or does not run.",
    "`kubectl get deployments -A` shows whether the training operator runs.",
)
FIELD_DROPPED = infrastructure_error(
    "FieldDropped",
    409,
    "A part of the runtime requires a pod field that Kubeflow's kinds drop silently.",
    "Create a version of the part for training jobs without the field, and list the kinds of both in `serves`.",
)
RUN_FAILED = user_error(
    "RunFailed",
    422,
    "The last run of a periodic job failed, and its exit was not observed.",
    "`pin logs NAME`; the next run starts on schedule.",
)
RUN_OVERLAPS = user_error(
    "RunOverlaps",
    409,
    "A run was still active when the next one was due, which was therefore skipped.",
    "Make runs shorter or rarer, or set `overlap: allow` or `overlap: replace`.",
)
RUN_MISSED = infrastructure_error(
    "RunMissed",
    503,
    "A run was due and has not started.",
    "Check that Kubernetes' controller manager runs; `startWithinSeconds` allows late starts.",
)
