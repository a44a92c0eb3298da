"""Faults of work that ends: batches, periodic jobs and training jobs."""

from __future__ import annotations

from pincompute.base import reasons
from pincompute.planning.faults import changes
from pincompute.planning.faults.fault import EXIT_REASONS, NO_CAPACITY_REASONS, Fault

_PERIODIC_KINDS = ("PinterestCronJob",)
_TRAINING_KINDS = ("PinterestTrainingJob",)

BATCH_FAULTS: tuple[Fault, ...] = (
    Fault(
        "task-fails",
        "every task fails",
        (reasons.TASK_FAILED, *EXIT_REASONS),
        changes.run_command("sh", "-c", "echo bad header; exit 3"),
        ("PinterestJobSet",),
        needs_containers=True,
    ),
    Fault(
        "deadline-too-short",
        "the deadline of the batch is shorter than its work",
        (reasons.DEADLINE_EXCEEDED,),
        changes.in_sequence(changes.run_command("sleep", "600"), changes.set_fields(deadline_seconds=1)),
        ("PinterestJobSet",),
        needs_containers=True,
    ),
    Fault(
        "task-deadline-too-short",
        "the deadline of a task is shorter than its work",
        (reasons.DEADLINE_EXCEEDED,),
        changes.in_sequence(changes.run_command("sleep", "600"), changes.set_fields(task_deadline_seconds=1)),
        ("PinterestJobSet",),
        needs_containers=True,
    ),
    Fault(
        "run-fails",
        "a run starts now and fails",
        EXIT_REASONS,
        changes.and_run_now(changes.run_command("sh", "-c", "echo the ledger is locked; exit 5")),
        _PERIODIC_KINDS,
        needs_containers=True,
    ),
    Fault(
        "run-wrong-command",
        "a run starts now with a command that does not exist in the image",
        (reasons.COMMAND_NOT_FOUND,),
        changes.and_run_now(changes.run_command("/no/such/program")),
        _PERIODIC_KINDS,
        needs_containers=True,
    ),
    Fault(
        "run-wrong-tag",
        "a run starts now with an image tag that does not exist",
        (reasons.IMAGE_PULL_FAILED,),
        changes.and_run_now(changes.replace_image(changes.with_missing_tag)),
        _PERIODIC_KINDS,
        needs_containers=True,
    ),
    Fault(
        "run-deadline-too-short",
        "a run starts now and exceeds its deadline",
        (reasons.DEADLINE_EXCEEDED,),
        changes.and_run_now(
            changes.in_sequence(changes.run_command("sleep", "600"), changes.set_fields(deadline_seconds=1))
        ),
        _PERIODIC_KINDS,
        needs_containers=True,
    ),
    Fault(
        "run-unschedulable",
        "a run starts now and requests more than any node has",
        NO_CAPACITY_REASONS,
        changes.and_run_now(changes.request_resources(cpu="4000")),
        _PERIODIC_KINDS,
    ),
    Fault(
        "run-overlaps",
        "a run is due while the previous one is still active",
        (reasons.RUN_OVERLAPS,),
        changes.in_sequence(
            changes.run_command("sleep", "600"), changes.set_fields(schedule="* * * * *", overlap="forbid")
        ),
        _PERIODIC_KINDS,
        needs_containers=True,
    ),
    Fault(
        "replica-fails",
        "a training replica fails",
        (reasons.REPLICA_FAILED, *EXIT_REASONS),
        changes.run_command("sh", "-c", "echo the loss is not a number; exit 6"),
        _TRAINING_KINDS,
        needs_containers=True,
    ),
    Fault(
        "replica-wrong-command",
        "the command of the training replicas does not exist in the image",
        (reasons.COMMAND_NOT_FOUND,),
        changes.run_command("/no/such/program"),
        _TRAINING_KINDS,
        needs_containers=True,
    ),
    Fault(
        "replica-oom",
        "the training replicas exceed their memory limit",
        (reasons.OUT_OF_MEMORY,),
        changes.in_sequence(
            changes.run_command("dd", "if=/dev/zero", "of=/dev/null", "bs=50000000", "count=1"),
            changes.request_resources(memory="32Mi"),
        ),
        _TRAINING_KINDS,
        needs_containers=True,
    ),
    Fault(
        "gang-unschedulable",
        "only some of the training replicas fit on the nodes",
        (reasons.GANG_PARTIALLY_SCHEDULED, *NO_CAPACITY_REASONS),
        changes.in_sequence(changes.run_command("sleep", "600"), changes.oversize_workers),
        _TRAINING_KINDS,
        needs_containers=True,
    ),
)
