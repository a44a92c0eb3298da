"""Reasons of pods and containers: images, start, exit, probes, admission, scheduling and nodes."""

from __future__ import annotations

from pincompute.base.reasons.reason import infrastructure_error, user_error

IMAGE_PULL_FAILED = user_error(
    "ImagePullFailed",
    422,
    "A node cannot pull the image.",
    "Correct the image's name, or push it with `pin image load`.",
)
IMAGE_FORBIDDEN = user_error(
    "ImageForbidden",
    403,
    "The registry denies access to the image.",
    "Push it with `pin image load`, or name imagePullSecrets in the template.",
)
REGISTRY_UNREACHABLE = infrastructure_error(
    "RegistryUnreachable",
    503,
    "The image's registry does not respond to the nodes, or returns errors.",
    "The kubelet retries by itself; the message holds its error.",
)
IMAGE_SLOW = infrastructure_error(
    "ImageSlow",
    504,
    "An image pull takes more than five minutes.",
    "Make the image smaller; `pin show NAME` shows the progress.",
)
RUNS_AS_ROOT = user_error(
    "RunsAsRoot",
    422,
    "The image runs as root, which is not allowed.",
    "Add a line such as `USER 1000` to its Containerfile.",
)
START_FAILED = user_error(
    "StartFailed", 422, "A container cannot be started.", "The message holds the kubelet's error."
)
COMMAND_NOT_FOUND = user_error(
    "CommandNotFound",
    422,
    "A container's command does not exist in its image, or is not executable.",
    "Correct `command`, or the image.",
)
CONFIGURATION_MISSING = user_error(
    "ConfigurationMissing",
    422,
    "A ConfigMap or Secret of the workload does not exist, or lacks a key.",
    "Correct the name, or create it.",
)
INIT_CONTAINER_SLOW = user_error(
    "InitContainerSlow",
    504,
    "An init container has been running for more than five minutes.",
    "Read its log: `kubectl logs POD -c CONTAINER`.",
)
CRASH_LOOP = user_error("CrashLoop", 422, "The program exits repeatedly.", "Read its last lines: `pin logs NAME`.")
PROGRAM_FAILED = user_error(
    "ProgramFailed", 422, "The program exited with an error.", "Read its last lines: `pin logs NAME`."
)
KILLED = user_error("Killed", 422, "The program was killed by a signal.", "`pin logs NAME` shows its last lines.")
OUT_OF_MEMORY = user_error(
    "OutOfMemory",
    422,
    "The program exceeded its memory limit.",
    "Raise `memory`; rerun failed tasks with `pin rerun NAME --reason OutOfMemory --memory 1Gi`.",
)
PORT_NOT_LISTENING = user_error(
    "PortNotListening",
    422,
    "The program runs, and does not listen on its port.",
    "Correct `port`, or make the program listen on all addresses.",
)
PROBE_FAILED = user_error(
    "ProbeFailed",
    422,
    "A probe of the template fails, so that the container is not ready or is restarted.",
    "Correct the probe, or give it more time.",
)
HEALTH_CHECK_FAILED = user_error(
    "HealthCheckFailed",
    422,
    "The health check's path does not respond with a status below 400.",
    "Correct the path, or its handler.",
)
READINESS_GATE_CLOSED = infrastructure_error(
    "ReadinessGateClosed",
    503,
    "The program responds, and a readiness gate keeps its pod out of traffic.",
    "The message names the gate; check that its controller runs.",
)
RUNTIME_PART_FAILING = infrastructure_error(
    "RuntimePartFailing",
    500,
    "A part of the runtime fails in a pod; the workload's own program is not the cause.",
    "Tell the infrastructure team; `hold` in the file keeps an older runtime.",
)
POD_SECURITY = user_error(
    "PodSecurity",
    422,
    "A pod violates the Pod Security level of the project.",
    "Remove the settings that the message names from the template.",
)
ADMISSION_DENIED = user_error(
    "AdmissionDenied",
    403,
    "An admission webhook or policy of the cluster denies the pods.",
    "Change what the message names, or ask for an exception.",
)
ADMISSION_UNREACHABLE = infrastructure_error(
    "AdmissionUnreachable",
    503,
    "An admission webhook for pods does not respond.",
    "The message names it; no pod can be created until it responds.",
)
POD_REJECTED = user_error("PodRejected", 422, "Kubernetes rejects the pods.", "The message holds its error.")
POD_NOT_CREATED = infrastructure_error(
    "PodNotCreated",
    504,
    "No pod was created for a minute, and only Kubernetes events can say why.",
    "`kubectl describe` the object that the message names.",
)
CONTROLLER_NOT_RESPONDING = infrastructure_error(
    "ControllerNotResponding",
    503,
    "No controller of Kubernetes has acted on an object of a workload for a minute, so that its pods are not created.",
    "Check that kube-controller-manager runs; on a local platform `pin status` shows it, and `pin up` starts it.",
)
PRIORITY_MISSING = infrastructure_error(
    "PriorityMissing",
    500,
    "The cluster lacks the priority class of a tier.",
    "Compare `kubectl get priorityclasses`; `pin up` or `pin install` creates one for each tier.",
)
UNSCHEDULABLE = infrastructure_error(
    "Unschedulable", 422, "No node has enough free capacity.", "The message names the scarce resource."
)
NO_NODE_MATCHES = infrastructure_error(
    "NoNodeMatches",
    422,
    "Taints, labels, affinity or other workloads exclude every node.",
    "Correct the node requirements of the template, or ask for matching nodes.",
)
CLAIM_NOT_BOUND = infrastructure_error(
    "ClaimNotBound",
    422,
    "A volume claim is not bound, or its volume is not reachable from any eligible node.",
    "`kubectl describe pvc NAME` shows what it waits for.",
)
SCHEDULING_GATED = user_error(
    "SchedulingGated",
    422,
    "A pod has a scheduling gate, and no scheduler considers it before the gate is removed.",
    "Remove `schedulingGates` from the template; a gate of another controller is removed by that.",
)
SCHEDULER_UNKNOWN = user_error(
    "SchedulerUnknown",
    422,
    "The template names a scheduler, and none of that name acts on the pods.",
    "Remove `schedulerName` from the template, or correct it.",
)
SCHEDULER_NOT_RESPONDING = infrastructure_error(
    "SchedulerNotResponding",
    503,
    "No scheduler has acted on a new pod for 30 seconds.",
    "Check that kube-scheduler runs; on a local platform `pin status` shows it, and `pin up` starts it.",
)
NODE_NOT_RESPONDING = infrastructure_error(
    "NodeNotResponding",
    503,
    "A pod is assigned to a node whose kubelet has not acted on it for 30 seconds.",
    "Check the kubelet of the node; a node that is down loses its pods after five minutes.",
)
POD_SETUP_SLOW = infrastructure_error(
    "PodSetupSlow",
    504,
    "A pod has a node, and its volumes, certificate or network are not ready after a minute.",
    "`pin why NAME` shows what it waits for.",
)
EVICTED = infrastructure_error(
    "Evicted",
    503,
    "A node evicted a pod: it was short of a resource, or is being shut down or drained.",
    "It is replaced automatically; request what the program really uses.",
)
PREEMPTED = infrastructure_error(
    "Preempted",
    503,
    "A pod was preempted by work of a higher tier.",
    "It is recreated when there is capacity; a higher tier is not preempted.",
)
NODE_LOST = infrastructure_error(
    "NodeLost",
    503,
    "The node of a pod is not responding.",
    "The pod is replaced on another node after five minutes; `kubectl get nodes` shows the node.",
)
NODE_REFUSED = infrastructure_error(
    "NodeRefused",
    503,
    "A node rejected a pod that was scheduled to it.",
    "It is replaced automatically; the message holds the kubelet's error.",
)
