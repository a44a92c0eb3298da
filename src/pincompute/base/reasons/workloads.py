"""Reasons of workloads: names, commands on them, rollouts, logs and migration."""

from __future__ import annotations

from pincompute.base.reasons.reason import Actor, info, infrastructure_error, ok, user_error

NAME_TAKEN = user_error(
    "NameTaken",
    409,
    "Another workload of the project has this name: names are unique over all kinds.",
    "Choose another name.",
)
HOST_TAKEN = user_error(
    "HostTaken",
    409,
    "The host of a service belongs to another project: by its domain, its list of hosts, or because it had it first.",
    "Leave out `loadBalancer.host`, or choose another; administrators move a host with `spec.hosts` of the projects.",
)
HOST_NOT_LISTED = user_error(
    "HostNotListed",
    403,
    "A service asks for a host that its project was not given.",
    "Leave out `loadBalancer.host`, or ask an administrator to add the host to `spec.hosts` of the project.",
)
HOST_RESERVED = user_error(
    "HostReserved",
    403,
    "The host of a service is reserved for the platform: `localhost`, the domain itself, an address, the desk's host.",
    "Leave out `loadBalancer.host`, or choose another.",
)
HOST_KEPT = info(
    "HostKept",
    "A service is still served at a host that its project was not given, because it had the host already.",
    "An administrator adds the host to `spec.hosts` of the project, as the message says.",
    actor=Actor.INFRASTRUCTURE,
)
INGRESS_CLASS_UNKNOWN = user_error(
    "IngressClassUnknown",
    409,
    "The cluster has no IngressClass of the name in `loadBalancer.class`, so that no controller serves the address.",
    "Leave out `loadBalancer.class`, or choose a class that the message lists.",
)
INGRESS_NOT_RESPONDING = infrastructure_error(
    "IngressNotResponding",
    503,
    "The replicas are ready, but no ingress controller has reported for 30 seconds that it serves the address.",
    "`pin status` shows the ingress of the platform; that of another one is described by the events of the Ingress.",
)
CERTIFICATE_MISMATCH = user_error(
    "CertificateMismatch",
    409,
    "The address of a service with TLS is served with a certificate for other hosts: the Secret is missing, is not of "
    "type `kubernetes.io/tls`, or has a certificate for another host.",
    "Store a certificate for the host in the Secret of `loadBalancer.tls`, as the message says.",
)
CERTIFICATE_EXPIRED = user_error(
    "CertificateExpired",
    409,
    "The address of a service with TLS is served with a certificate that has expired.",
    "Store a renewed certificate in the Secret of `loadBalancer.tls`, as the message says.",
)
WORKLOAD_UNKNOWN = user_error(
    "WorkloadUnknown", 404, "No workload of that name exists in the project.", "`pin get` lists the workloads."
)
NOT_FOR_KIND = user_error(
    "NotForKind",
    422,
    "The command does not apply to this kind of workload.",
    "The message names the command that does.",
)
NOTHING_FAILED = user_error(
    "NothingFailed",
    409,
    "No task or run failed for the given reason, so that nothing can be rerun.",
    "`pin get NAME` lists the failures.",
)
REVISION_UNKNOWN = user_error(
    "RevisionUnknown",
    404,
    "No record of that revision exists; the last ten are kept.",
    "`pin show NAME` lists the revisions.",
)
REVISION_INCOMPLETE = user_error(
    "RevisionIncomplete",
    409,
    "A rollback cannot restore the revision completely: the digest of an image was not recorded.",
    "roll back to another revision, or accept the image of the tag with `pin rollback NAME --to N --partial`.",
)
FAULT_UNKNOWN = user_error(
    "FaultUnknown",
    404,
    "The catalogue has no fault of that name for this kind of workload.",
    "`pin break NAME` lists the faults.",
)
FAULT_ALREADY_INJECTED = user_error(
    "FaultAlreadyInjected",
    409,
    "A fault is injected into the workload already.",
    "Remove it with `pin heal NAME` first.",
)
PROGRAM_UNKNOWN = user_error(
    "ProgramUnknown",
    404,
    "The image has no such program.",
    "Run one that it has; `pin shell NAME` opens its shell, if any.",
)
REPLICA_UNKNOWN = user_error(
    "ReplicaUnknown", 404, "The workload has no replica or task of that name.", "The message lists those that exist."
)
NO_LOGS = user_error(
    "NoLogs",
    409,
    "A simulated workload runs no containers and has no logs.",
    "Run it on a real node: leave `--simulated` out.",
)
LOGS_UNAVAILABLE = infrastructure_error(
    "LogsUnavailable",
    503,
    "The log store is unreachable, so that logs of deleted pods cannot be read.",
    "`pin status` shows whether the log store runs.",
)
LOGS_FULL = infrastructure_error(
    "LogsFull",
    507,
    "The log store is full, and nothing in it may be removed.",
    "Free space on its disk; unshipped lines stay on the nodes and are shipped afterwards.",
)
TIMED_OUT = infrastructure_error(
    "TimedOut",
    504,
    "The workload did not reach its goal before the time limit of the command.",
    "`pin why NAME` explains what it waits for.",
)
PAUSED = info("Paused", "A rollout is paused.", "`pin resume NAME` continues it.")
SUSPENDED = info("Suspended", "A workload is suspended.", "`pin resume NAME` continues it.")
EXPIRES_SOON = info(
    "ExpiresSoon",
    "The life of a workload or project ends soon, by `expires` in its file or in that of its project.",
    "Set a later time in `expires`, and deploy the file again.",
)
EXPIRED = info(
    "Expired",
    "The life of a workload or project has ended: it has no replicas, runs and tasks any more.",
    "Set a later time in `expires`, and deploy the file again: the workload continues.",
)
PROGRESSING = info("Progressing", "The workload progresses towards its goal.", actor=Actor.NONE)
AVAILABLE = ok("Available", "Every replica is up to date and ready.")
SUCCEEDED = ok("Succeeded", "All of the work succeeded.")
ROLLOUT_STALLED = user_error(
    "RolloutStalled",
    504,
    "A rollout made no progress within its deadline, and no deeper cause is known.",
    "`kubectl describe deployment NAME` shows its state.",
)
ROLLOUT_BLOCKED = user_error(
    "RolloutBlocked",
    409,
    "A replica of a former revision is not ready and blocks the rollout.",
    "It is replaced as soon as that is safe; the message names its problem.",
)
CANNOT_CHANGE = user_error(
    "CannotChange", 409, "Kubernetes does not allow this field to change.", "The message names the alternative."
)
CANNOT_IMPORT = user_error(
    "CannotImport",
    422,
    "An object, or one related to it, has settings that cannot be represented, or that an import would change.",
    "The message names them, with the keywords by which `--accept` accepts changes.",
)
ADOPTION_IN_PROGRESS = infrastructure_error(
    "AdoptionInProgress",
    503,
    "The workload is adopting existing objects and has not finished.",
    "Nothing that runs is stopped; `pin show NAME` shows what it waits for.",
)
MANAGED_ELSEWHERE = user_error(
    "ManagedElsewhere",
    409,
    "Another tool manages the object and would overwrite changes to it.",
    "Stop managing it there, and pass `--take-over`.",
)
ENSEMBLE_UNREACHABLE = infrastructure_error(
    "EnsembleUnreachable",
    503,
    "The replicas are ready, but the registrar of their node has not reached ZooKeeper for 30 seconds, so that clients "
    "which find them by the serverset do not see them. Files of endpoints keep the last known addresses meanwhile.",
    "`pin status` shows the ZooKeeper of the platform; replicas are registered by themselves when it answers again.",
)
REGISTRAR_NOT_RESPONDING = infrastructure_error(
    "RegistrarNotResponding",
    503,
    "The replicas are ready, but no registrar has reported for 30 seconds that they are in their serverset.",
    "`pin status` shows the registrar; a platform without one gets it by `pin up --with zookeeper`.",
)
