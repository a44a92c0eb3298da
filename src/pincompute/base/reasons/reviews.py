"""Reasons of reviews, builds, policies and break-glass."""

from __future__ import annotations

from pincompute.base.reasons.reason import info, infrastructure_error, user_error

ONLY_LANDED = user_error(
    "OnlyLanded",
    403,
    "The project accepts only builds of reviewed and landed commits.",
    "CI publishes them with `pin publish`; `pin deploy NAME --version VERSION` deploys one.",
)
POLICY_DENIED = user_error(
    "PolicyDenied",
    403,
    "A workload violates a policy of its project or of the platform.",
    "The message shows the rule with the value of each part; docs/policies.md explains the rules.",
)
POLICY_INVALID = user_error(
    "PolicyInvalid",
    403,
    "A policy cannot be parsed or evaluated, so that nothing is accepted under it.",
    "Its author fixes the policy: the message names a contact, and `pin plan` of the project shows the error.",
)
BUILD_UNKNOWN = user_error(
    "BuildUnknown", 404, "No build of that name and version was published.", "The message lists the published versions."
)
BUILD_ALTERED = user_error(
    "BuildAltered",
    403,
    "A build in the artifact store differs from what was signed, or from the repository.",
    "Publish it again from the landed commit, and find out what changed the store.",
)
BUILDER_UNKNOWN = user_error(
    "BuilderUnknown",
    403,
    "A build is not signed by a builder that its project trusts.",
    "`landing.builders` of the project lists the trusted builders.",
)
NOT_LANDED = user_error(
    "NotLanded",
    403,
    "A build's commit is not on the project's protected branch.",
    "Land the commit, and publish it from the branch.",
)
NOT_REVIEWED = user_error(
    "NotReviewed",
    403,
    "A commit, or one below it since the last accepted build, lacks approvals by people other than its authors.",
    "`pin review COMMIT` approves it; `landing.people` of the project lists the reviewers.",
)
BREAK_GLASS_ACTIVE = info(
    "BreakGlassActive",
    "An emergency override is active: unreviewed work runs for a limited time.",
    "Deploy a reviewed and landed build to end it: `pin deploy NAME --version VERSION`.",
)
BREAK_GLASS_EXPIRED = user_error(
    "BreakGlassExpired",
    403,
    "An emergency override has expired. The unreviewed work keeps running, and no other change is accepted.",
    "`pin deploy NAME --version VERSION` with a reviewed build, `pin rollback` to one, or another `--break-glass`.",
)
BREAK_GLASS_INVALID = user_error(
    "BreakGlassInvalid",
    422,
    "An emergency override has no reason, lasts too long, or is not needed.",
    '`pin deploy FILE --break-glass "INC-4711: why" --for 4h`; the maximum is 24 hours.',
)
LANDING_NOT_CONFIGURED = infrastructure_error(
    "LandingNotConfigured",
    409,
    "The project accepts only landed builds, and names no repository or trusted keys.",
    "Set `spec.landing` of the project.",
)
REPOSITORY_FAILED = infrastructure_error(
    "RepositoryFailed", 503, "The project's repository cannot be read.", "The message holds git's error."
)
REPOSITORY_REFUSED = infrastructure_error(
    "RepositoryRefused",
    409,
    "The address of the project's repository is not protected: others could change what the desk reads.",
    "Set `spec.landing.repository` of the project to an https:// or ssh:// address, or to a local path.",
)
REPOSITORY_TOO_LARGE = user_error(
    "RepositoryTooLarge",
    422,
    "The repository has more than the desk reads: a fetch, a workload file or the data of commits is too large.",
    "The message has the limit and the object; docs/builds.md lists all limits.",
)
STORE_FAILED = infrastructure_error(
    "StoreFailed",
    503,
    "The artifact store did not respond, or returned an error.",
    "The message holds its address and response.",
)
PROJECT_NOT_OPEN = user_error(
    "ProjectNotOpen",
    403,
    "The project accepts only reviewed work, so that no fault can be injected into it.",
    "Deploy the workload to a project with the review policy `open`, and inject the fault there.",
)
