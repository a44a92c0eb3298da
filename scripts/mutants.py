"""Mutation tests: faults that are put into the code, one at a time, and that the tests must detect (`make prove`)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "pincompute"


class Mutant(NamedTuple):
    file: str
    original: str
    replacement: str
    tests: str


_AUTHN = "tests/desk/authn"
_REVIEWS = "tests/hostile/test_reviews.py"
_IMPORTS = "tests/planning/migration"
_OWASP = "tests/desk/test_owasp.py"
_TRANSACTION = "tests/desk/store/test_transaction.py"
_PAGES = "tests/hostile/test_local_pages.py"
_SETS = "tests/desk/test_sets.py"
_CONNECTIONS = "tests/desk/limits/test_connections.py"

MUTANTS = (
    Mutant("planning/diff.py", "if metadata.controller_uid == owner_uid:", "if True:", "tests/planning"),
    Mutant("planning/diff.py", "existing.wanted_hash == wanted", "existing.wanted_hash != wanted", "tests/planning"),
    Mutant("planning/diff.py", "if native.metadata.controller_uid == owner_uid]", "]", "tests/planning"),
    Mutant("planning/diff.py", "if hash_before is None or hash_before == hash_after:", "if True:", "tests/planning"),
    Mutant("planning/kinds/service.py", "each.template_hash == built.template_hash", "True", "tests/planning"),
    Mutant("planning/observed_pods.py", "not self.metadata.deletion_timestamp and", "", "tests/planning"),
    Mutant("planning/status.py", "before.last_transition_time if before and same else", "", "tests/planning"),
    Mutant(
        "planning/diff.py", "immutable.on_change is OnImmutableChange.RECREATE_AROUND_PODS", "False", "tests/planning"
    ),
    Mutant(
        "planning/migration/adoption.py",
        "orphan_pods=native.kind in _RECREATED_KINDS",
        "orphan_pods=False",
        "tests/planning",
    ),
    Mutant(
        "planning/migration/adoption.py", "    if KIND_LABEL not in metadata.labels:", "    if False:", "tests/planning"
    ),
    Mutant(
        "planning/migration/adoption.py",
        "if each.metadata.controller_uid and each.generation_observed",
        "",
        "tests/planning",
    ),
    Mutant("planning/migration/sibling_program.py", "separator not in value", "True", _IMPORTS),
    Mutant("planning/migration/sibling_program.py", "shlex.quote(text) if text", "text if text", _IMPORTS),
    Mutant("planning/migration/adoption.py", "bool(_own(snapshot, DEPLOYMENT)) and", "", "tests/planning"),
    Mutant("planning/migration/adoption.py", "labelled >= native.status.replicas", "True", "tests/planning"),
    Mutant("planning/migration/adoption.py", "(*_RECREATED_KINDS, CRON_JOB) and", "() and", "tests/planning"),
    Mutant("planning/migration/changes.py", "accepted.isdisjoint({ALL, each.keyword})", "False", _IMPORTS),
    Mutant("planning/migration/native_documents.py", "elif _is_list(item):", "elif False:", _IMPORTS),
    Mutant("planning/migration/survey.py", 'if native.get("apiVersion") != version:', "if False:", _IMPORTS),
    Mutant("api/service.py", "if self.worker:", "if False:", "tests/api/test_validation.py"),
    Mutant("planning/migration/short_form.py", "name in mounted_by_others or ", "", "tests/planning/migration"),
    Mutant("controller/adopt.py", "if controller_uid(pod) != uid:", "if False:", "tests/controller/test_adopt.py"),
    Mutant("planning/training/gang.py", "    if not gang.can_start:\n", "    if False:\n", "tests/planning"),
    Mutant(
        "planning/training/gang.py",
        "missing >= self.min_replicas",
        "missing > self.min_replicas",
        "tests/planning/test_cases.py",
    ),
    Mutant("planning/immutable.py", '"replicas": 0', "**{}", "tests/planning/test_cases.py"),
    Mutant(
        "planning/pods/injection.py",
        "not each.provided_names.isdisjoint",
        "not each.provided_names.issubset",
        "tests/planning",
    ),
    Mutant(
        "planning/pods/certificate_approval.py",
        "if not head else",
        "if True else",
        "tests/planning/pods/test_certificate_approval.py",
    ),
    Mutant(
        "planning/pods/certificate_approval.py",
        'self._token_field("node-name")',
        '"node-1"',
        "tests/planning/pods/test_certificate_approval.py",
    ),
    Mutant(
        "planning/pods/certificate_approval.py",
        "- ALLOWED_USAGES)",
        "- set(request.spec.usages))",
        "tests/planning/pods/test_certificate_approval.py",
    ),
    Mutant(
        "agents/identity/request_kinds.py",
        "if not request.approved:",
        "if True:",
        "tests/agents/identity/test_signer.py",
    ),
    Mutant(
        "agents/identity/certificate_request.py",
        "_renews_in_s(validity, renew_at) <= 0",
        "False",
        "tests/agents/identity/test_certificate_request.py",
    ),
    Mutant("agents/network_rules.py", "fib saddr . iif oif missing drop", "", "tests/agents/test_network_rules.py"),
    Mutant(
        "agents/network_rules.py", "ip daddr {pods} ip daddr != @pods drop", "", "tests/agents/test_network_rules.py"
    ),
    Mutant("agents/logs/stream_file.py", "os.truncate(self.path, size)", "pass", "tests/agents/logs"),
    Mutant(
        "agents/logs/store.py",
        "self._index.size_bytes + count > self._usable_bytes",
        "False",
        "tests/agents/logs/test_store.py",
    ),
    Mutant("engine/converge.py", "or part_reexec.can_reexec(wanted, process)", "", "tests/engine/test_converge.py"),
    Mutant("planning/diagnosis/probes.py", "age_s < grace_s", "age_s > grace_s", "tests/planning"),
    Mutant("planning/diagnosis/exits.py", '"CrashLoopBackOff"', '"CrashLoop"', "tests/planning"),
    Mutant("planning/diagnosis/container_start.py", '"runAsNonRoot" in message', "False", "tests/planning"),
    Mutant("planning/pods/pod.py", "cluster.simulated or owner.spec.simulated", "cluster.simulated", "tests/planning"),
    Mutant("planning/pods/pod.py", "in sorted(spec.environment)", "in spec.environment", "tests/planning"),
    Mutant("planning/pods/pod.py", '{**defaults, "runAsNonRoot": False}', "defaults", "tests/planning"),
    Mutant("planning/revision.py", '- {""}', "- files", "tests/planning"),
    Mutant("planning/runtimes/selection.py", "if now > end or", "if", "tests/planning"),
    Mutant(
        "planning/runtimes/selection.py", "or hold.runtime < _holds_void_before(runtimes, number)", "", "tests/planning"
    ),
    Mutant("planning/pods/injection.py", "    if problems:\n", "    if False:\n", "tests/planning"),
    Mutant(
        "planning/pods/certificate_approval.py",
        "        if owner.metadata.uid != expected_uid:",
        "        if False:",
        "tests/planning/pods/test_certificate_approval.py",
    ),
    Mutant(
        "planning/pods/certificate_approval.py",
        "if kinds not in OWNER_CHAINS:",
        "if False:",
        "tests/planning/pods/test_certificate_approval.py",
    ),
    Mutant("objects/svid.py", "spiffe_id.trust_domain != trust_domain", "False", "tests/objects/test_svid.py"),
    Mutant("objects/svid.py", "len(names) != 1", "not names", "tests/objects/test_svid.py"),
    Mutant("agents/identity/signer.py", "except (Conflict, NotFound):", "except NotFound:", "tests/agents/identity"),
    Mutant("agents/identity/signer.py", "elif request.answered:", "elif False:", "tests/agents/identity"),
    Mutant(
        "planning/runtimes/roll_preview.py",
        "max(1, scaled_value(share, pods, up=False))",
        "scaled_value(share, pods, up=False)",
        "tests/planning",
    ),
    Mutant("planning/kinds/project.py", '_scope("NotIn", by_class)', '_scope("In", by_class)', "tests/planning"),
    Mutant("planning/batch/runs.py", "run.revision not in", "run.revision in", "tests/planning"),
    Mutant("planning/batch/runs.py", "sorted(deleted | replaced)", "sorted(replaced)", "tests/planning"),
    Mutant("planning/batch/runs.py", "in recorded and _is_superseded(", "or _is_superseded(", "tests/planning"),
    Mutant("planning/training/retries.py", "sum(failures.values()) > owner", "0 > owner", "tests/planning"),
    Mutant(
        "planning/training/retries.py",
        "for uid in sorted({*recorded, *observed})",
        "for uid in observed",
        "tests/planning",
    ),
    Mutant(
        "planning/batch/attempts.py", "return single not in find_jobs", "return single in find_jobs", "tests/planning"
    ),
    Mutant(
        "planning/views/plan_preview.py",
        "set(wanted) - {change.native for change in changes}",
        "set(wanted)",
        "tests/planning/views/test_plan_preview.py",
    ),
    Mutant(
        "planning/edits.py",
        "isinstance(after, PinterestJobSet) and same_work:",
        "isinstance(after, PinterestJobSet):",
        "tests/planning/test_edits.py",
    ),
    Mutant(
        "planning/batch/attempts.py",
        "not is_finished(job) and not is_suspended(job)",
        "False",
        "tests/planning/test_job_set.py",
    ),
    Mutant("planning/diagnosis/waiting.py", "each != GANG_GATE", "True", "tests/planning/diagnosis/test_corpus.py"),
    Mutant(
        "planning/diagnosis/claims.py",
        "volume.may_be_bound_to(claim)",
        "False",
        "tests/planning/diagnosis/test_claims.py",
    ),
    Mutant("planning/views/history.py", "each.differs(owner)", "True", "tests/planning/test_edits.py"),
    Mutant(
        "planning/revision_number.py",
        "newest if is_present else newest + 1",
        "newest",
        "tests/planning/test_revision_number.py",
    ),
    Mutant(
        "planning/diagnosis/explain.py",
        "waited_s < OPERATOR_RESPONSE_GRACE_S",
        "waited_s > OPERATOR_RESPONSE_GRACE_S",
        "tests/planning/diagnosis/test_explain.py",
    ),
    Mutant(
        "planning/diagnosis/evidence.py", 'each.type == "Warning" and', "", "tests/planning/diagnosis/test_explain.py"
    ),
    Mutant(
        "platforms/kubernetes/changes.py", "_edit_fingerprint(read) != _edit_fingerprint(before)", "False", "tests/desk"
    ),
    Mutant(
        "platforms/kubernetes/changes.py",
        "not _removes_fields(without_defaults(read.spec), without_defaults(wanted.spec))",
        "True",
        "tests/platforms",
    ),
    Mutant("api/documents.py", "if name in first:", "if False:", "tests/api"),
    Mutant("api/documents.py", "if isinstance(event, yaml.AliasEvent):", "if False:", "tests/api"),
    Mutant(
        "api/documents.py",
        "event.value if event.style else parse_scalar(event.value)",
        "parse_scalar(event.value)",
        "tests/api",
    ),
    Mutant("api/validation.py", "project and namespace and project != namespace", "False", "tests/api"),
    Mutant("api/validation.py", "and len(name) <= kind.MAX_NAME_LENGTH", "", "tests/api"),
    Mutant("api/validation.py", "if key in first:", "if False:", "tests/api/test_validation.py"),
    Mutant("api/manifests.py", 'key != "title" and', "", "tests/api"),
    Mutant("controller/loop.py", "if key not in self._busy:", "if True:", "tests/controller/test_loop.py"),
    Mutant("controller/loop.py", "elif requeue_after_s is not None:", "elif False:", "tests/controller/test_loop.py"),
    Mutant("controller/field_ownership.py", '"value": "Apply"', '"value": "Update"', "tests/controller"),
    Mutant(
        "platforms/kubernetes/workloads.py",
        "raise Refused(created_by_another_problem(workload))",
        "raise error",
        "tests/desk/test_kubernetes.py",
    ),
    Mutant("controller/apply.py", "controller_uid(found) != controller_uid(native)", "False", "tests/controller"),
    Mutant("controller/reconcile.py", "if status == owner.status:", "if False:", "tests/controller"),
    Mutant("kube/informer.py", "self._remove(key, self.items[key])\n", "pass\n", "tests/simulation/test_fuzz.py"),
    Mutant(
        "controller/loop.py",
        "return backoff_s(failures + 1, self._random(), MAX_BACKOFF_S)",
        "return None",
        "tests/simulation/test_fuzz.py",
    ),
    Mutant(
        "controller/reconcile.py",
        "return reported and any(isinstance(each, Create) for each in difference.steps)",
        "return False",
        "tests/simulation/test_outages.py",
    ),
    Mutant("desk/limits/connections.py", " if each not in active]", "]", _CONNECTIONS),
    Mutant("desk/limits/connections.py", "[:excess]", "[:1]", _CONNECTIONS),
    Mutant("desk/authn/local_token.py", "if not hmac.compare_digest(", "if not len and (", _AUTHN),
    Mutant("desk/authn/local_token.py", "self._identity if credentials.is_local else None", "self._identity", _AUTHN),
    Mutant("desk/authn/authenticator.py", "ip_address(self.address).is_loopback and", "", _AUTHN),
    Mutant("desk/authn/authenticator.py", "and not self.forwarded", "", _AUTHN),
    Mutant("desk/authn/openid.py", "if name.startswith(RESERVED_NAME_PREFIXES):", "if False:", _AUTHN),
    Mutant("desk/authn/openid.py", 'exp={"essential": True},', "", _AUTHN),
    Mutant("desk/authn/openid.py", "min(identity.valid_until, now + TOKEN_CACHE_TTL)", "identity.valid_until", _AUTHN),
    Mutant("desk/authn/discovery.py", 'if discovery.get("issuer") != issuer:', "if False:", _AUTHN),
    Mutant(
        "desk/authn/sessions.py",
        "if found is None or (found.identity.is_local and not credentials.is_local):",
        "if found is None:",
        _AUTHN,
    ),
    Mutant("desk/store/sessions.py", "digest, sign_in_links.c.expires_s > now_s)", "digest)", _AUTHN),
    Mutant("desk/store/sessions.py", "return found if now_s < found.ends_s else None", "return found", _AUTHN),
    Mutant("desk/store/sessions.py", "if identity.valid_until:", "if False:", _AUTHN),
    Mutant("desk/authn/signing_keys.py", "- self._tried_at < MIN_FETCH_INTERVAL_S", "- 1e9 > 0", _AUTHN),
    Mutant("desk/authn/openid.py", "return not self._settings.requires_verified_email", "return True", _AUTHN),
    Mutant(
        "desk/authn/trusted_proxies.py",
        "if not self.networks or not self._contains(_parse(peer)):",
        "if False:",
        _AUTHN,
    ),
    Mutant(
        "desk/authn/service_accounts.py",
        "self._throttle.attempt(credentials, account)",
        "self._throttle.attempt(credentials)",
        "tests/hostile/test_shared_address.py",
    ),
    Mutant("base/page_token.py", "if hmac.compare_digest(_sent_token(request), token):", "if True:", _PAGES),
    Mutant("base/page_token.py", "    if not token:", "    if False:", _PAGES),
    Mutant("base/page_token.py", 'resource.canonical if resource else ""', "request.path[:8]", _PAGES),
    Mutant("desk/authn/service_accounts.py", "if AUDIENCE not in audiences_of(claims):", "if not claims:", _AUTHN),
    Mutant("desk/authn/client_certificates.py", "if until <= now:", "if False:", _AUTHN),
    Mutant("desk/authn/client_certificates.py", "if len(spiffe_id.path) != 2:", "if False:", _AUTHN),
    Mutant(
        "desk/pipeline.py", "await self._authorize(item.submission, rendered.workload_key, context)", "pass", _OWASP
    ),
    Mutant("desk/pipeline.py", "await self._authorize(submission, submission.workload_key, context)", "pass", _OWASP),
    Mutant(
        "desk/http/auth.py",
        "if isinstance(permission, Permission):\n            await authorizer",
        "if False:\n            await authorizer",
        _OWASP,
    ),
    Mutant(
        "admission/authorization.py",
        "if caller.type is IdentityType.PROGRAM:",
        "if False:",
        "tests/admission/test_authorization.py",
    ),
    Mutant(
        "admission/authorization.py",
        "or not caller.groups.isdisjoint(holders.groups)",
        "",
        "tests/admission/test_authorization.py",
    ),
    Mutant(
        "admission/authorization.py",
        "permission is not Permission.VIEW and kind ==",
        "kind ==",
        "tests/admission/test_authorization.py",
    ),
    Mutant(
        "desk/transaction.py",
        "outbox.insert_entry(connection, OutboxEntry(submission, rendered.command))",
        "pass",
        _TRANSACTION,
    ),
    Mutant("desk/transaction.py", "found.digest not in submission.digests", "False", _TRANSACTION),
    Mutant("desk/store/ledger.py", "ledger.c.written <= sql.", "ledger.c.written >= 0 * sql.", _TRANSACTION),
    Mutant(
        "platforms/kubernetes/platform.py", " and key not in self._maybe_written", "", "tests/desk/test_kubernetes.py"
    ),
    Mutant(
        "desk/store/ledger.py", "sql.func.max(ledger.c[each]).label", "sql.func.min(ledger.c[each]).label", _TRANSACTION
    ),
    Mutant(
        "desk/store/ledger.py", "sql.func.max(ledger.c[each]) for", "sql.func.min(ledger.c[each]) for", _TRANSACTION
    ),
    Mutant("admission/quota.py", " if holder != own}", "}", _SETS),
    Mutant("admission/quota.py", "largest_footprint((requested, tier.get(own, EMPTY_FOOTPRINT)))", "requested", _SETS),
    Mutant("admission/quota.py", "            accepted.append(key)", "            pass", _SETS),
    Mutant(
        "desk/rollback_review.py",
        "refuse_if(check_build_genuine(_without_config_versions(workload), [workload_of_build(published)]))",
        "pass",
        _REVIEWS,
    ),
    Mutant(
        "desk/rollback_review.py",
        "return await builds.verify_accepted_build(key, build, project)",
        "return build",
        _REVIEWS,
    ),
    Mutant("admission/commits.py", "grouped.add(id_)", "pass", "tests/admission/test_commits.py"),
    Mutant("admission/commits.py", "waiting += found.parents", "pass", _REVIEWS),
    Mutant("admission/commits.py", "& accepted.reviewers) >= landing.reviewers", ") >= 0", _REVIEWS),
    Mutant("desk/repository.py", "commit, await mirror.first_parent(commit)", "commit, bases", _REVIEWS),
    Mutant("desk/repository.py", "if size > MAX_NOTE_BYTES:", "if False:", _REVIEWS),
    Mutant("desk/repository.py", "max_file_bytes=MAX_FETCHED_FILE_BYTES", "max_file_bytes=0", _REVIEWS),
    Mutant("api/attestation.py", "            if self.exhausted:", "            if False:", _REVIEWS),
    Mutant(
        "desk/rollback_review.py",
        "refuse_if(check_build_genuine(workload, await database.transact(overrides, slow=True)))",
        "pass",
        "tests/desk/test_builds.py",
    ),
    Mutant(
        "desk/checks.py",
        "rendered._replace(project=planned_project)",
        "rendered",
        _SETS,
    ),
    Mutant("admission/quota.py", "requested > current and others", "others", _TRANSACTION),
    Mutant(
        "planning/footprint.py",
        'yield spec["replicas"] + _surge(spec),',
        'yield spec["replicas"],',
        "tests/planning/test_footprint.py",
    ),
    Mutant("base/secure_files.py", "MODE = 0o600", "MODE = 0o644", "tests/base"),
    Mutant("base/settings.py", "if flag is not None:", "if False:", "tests/base"),
)

RACES = (
    Mutant(
        "controller/reconcile.py",
        "if not self._sees_own_writes(key):",
        "if False:",
        "PinterestService --faults events-late",
    ),
    Mutant(
        "controller/reconcile.py",
        "self._deleting[key].add(step.uid)\n            self._note_write(key, after)",
        "self._deleting[key].add(step.uid)",
        "PinterestService --faults events-late",
    ),
    Mutant(
        "controller/reconcile.py",
        "                self._deleting[key].add(step.uid)\n",
        "                pass\n",
        "PinterestJobSetVerbs PinterestTrainingJob --faults events-late",
    ),
    Mutant(
        "controller/reconcile.py",
        "        self._note_write(key, after)\n        self._reported_at",
        "        self._reported_at",
        "PinterestService --faults events-late other-events-late",
    ),
    Mutant(
        "controller/reconcile.py",
        "return _ApplyResult(tuple(steps), conflict=error.message)",
        "continue",
        "PinterestService --faults write-conflict",
    ),
    Mutant(
        "controller/reconcile.py",
        "return PassResult(Outcome.FAILED, requeue_after_s, steps, Refused(*problems).text())",
        "return PassResult(Outcome.CHANGED, requeue_after_s, steps)",
        "tests/simulation/test_outages.py",
    ),
    Mutant(
        "controller/reconcile.py",
        "        applied = await self._apply_steps(key, snapshot, difference)\n",
        "        await self._report(key, snapshot.owner, plan.status)\n"
        "        applied = await self._apply_steps(key, snapshot, difference)\n",
        "PinterestService --faults crash-before crash-response-lost",
    ),
    Mutant(
        "controller/apply.py",
        "namespace, uid=step.uid, propagation=propagation",
        "namespace, propagation=propagation",
        "PinterestService --faults name-taken",
    ),
    Mutant(
        "controller/apply.py",
        'with_uid = {**native, "metadata": {**metadata, "uid": uid}}',
        "with_uid = native",
        "PinterestService --faults name-taken",
    ),
    Mutant(
        "controller/apply.py",
        "if controller_uid(found) != controller_uid(native):",
        "if False:",
        "PinterestService --faults name-taken",
    ),
    Mutant(
        "controller/apply.py",
        "if controller_uid(found) != controller_uid(native):",
        "if True:",
        "PinterestService --faults response-lost",
    ),
    Mutant(
        "controller/apply.py",
        '"deleteOptions": {"preconditions": {"uid": uid}},',
        "",
        "PinterestStatefulSet --faults events-late response-lost",
    ),
    Mutant(
        "controller/drift.py",
        "before._replace(own_fields_hash=_writer_record(native).own_fields_hash)",
        "_writer_record(native)",
        "PinterestService --faults foreign-edit",
    ),
    Mutant(
        "controller/loop.py",
        "if key in self._triggers:\n            self._add_to_queue(key)\n        elif requeue_after_s",
        "if requeue_after_s",
        "tests/controller/test_loop.py",
    ),
    Mutant(
        "controller/loop.py",
        "                self.enqueue(key, Trigger.RETRY)\n",
        "",
        "PinterestService --faults stalled-before-send",
    ),
    Mutant(
        "controller/status_writer.py",
        '            "resourceVersion": metadata.resource_version,\n',
        "",
        "tests/simulation/test_write_preconditions.py",
    ),
    Mutant(
        "operator/lease_guard.py",
        "if not request.safe and not self._is_leader():",
        "if False:",
        "PinterestService --faults stalled-after-send",
    ),
    Mutant(
        "operator/manager.py",
        "        await self.cache.wait_synced()\n",
        "",
        "Runtime --faults crash-before crash-response-lost",
    ),
    Mutant(
        "planning/diff.py",
        " if native.metadata.controller_uid == owner_uid]",
        "]",
        "PinterestService --faults name-taken",
    ),
    Mutant(
        "planning/diff.py",
        "if metadata.controller_uid == owner_uid:",
        "if True:",
        "PinterestService --faults name-taken",
    ),
    Mutant(
        "planning/batch/attempts.py",
        "job = next(iter(find_jobs(snapshot, state, number).values()), None)",
        "job = None",
        "tests/planning/test_cases.py",
    ),
    Mutant(
        "planning/kinds/job_set.py",
        "if attempt.ended and _retention_left_s(snapshot, attempt) > 0:",
        "if False:",
        "PinterestJobSet --faults crash-before crash-response-lost",
    ),
    Mutant(
        "planning/kinds/cron_job.py",
        "last_run_now=runs.latest_manual_run_number(owner, cron_runs),",
        "last_run_now=max(runs.latest_manual_run_number(owner, cron_runs), runs.requested_run_number(owner)),",
        "PinterestCronJob --faults request-lost server-error storage-full",
    ),
    Mutant(
        "planning/runtimes/in_place.py",
        "may_patch = is_paused and deployment.generation_observed",
        "may_patch = is_paused",
        "tests/planning/test_cases.py",
    ),
    Mutant(
        "planning/runtimes/in_place.py",
        "if is_paused and not patched.generation_observed:",
        "if False:",
        "tests/planning/test_cases.py",
    ),
    Mutant(
        "planning/runtimes/in_place.py",
        "waits = is_held and not (",
        "waits = False and not (",
        "tests/planning/test_cases.py",
    ),
    Mutant(
        "planning/runtimes/roll.py",
        "if health.cursor != cursor:\n        return RollStep",
        "if False:\n        return RollStep",
        "tests/planning/runtimes",
    ),
)
"""Mutants that show only if a write fails or another client is faster: the simulator detects most of them."""


def survives(mutant: Mutant) -> bool:
    """Whether the tests pass in spite of the mutant. The file is restored in any case.

    Tests that fail end with status 1. Any other status means that they were interrupted or could not run.
    """
    file = SOURCE / mutant.file
    before = file.read_text()
    assert before.count(mutant.original) == 1, f"{mutant.file}: '{mutant.original}' must occur once"
    try:
        file.write_text(before.replace(mutant.original, mutant.replacement))
        simulation = [sys.executable, "-m", "simulation", *mutant.tests.split(), "--first", "--seeds", "0"]
        pytest = [sys.executable, "-m", "pytest", "-x", "-q", mutant.tests]
        command = pytest if mutant.tests.startswith("tests/") else simulation
        ran = subprocess.run(command, cwd=ROOT, capture_output=True, check=False, text=True)
        if ran.returncode not in {0, 1}:
            raise RuntimeError(f"{' '.join(command)} ended with {ran.returncode}\n{ran.stdout}{ran.stderr}")
        return ran.returncode == 0
    finally:
        file.write_text(before)


def main(filters: list[str]) -> int:
    """Runs all mutants, or those of the given files or tests."""
    chosen = [each for each in (*MUTANTS, *RACES) if not filters or any(word in each for word in filters)]
    missed = []
    for mutant in chosen:
        if survived := survives(mutant):
            missed.append(mutant)
        print(
            f"{'MISSED' if survived else 'found '}  {mutant.file}: {mutant.original}  ->  {mutant.replacement}",
            flush=True,
        )
    print(f"{len(chosen) - len(missed)} of {len(chosen)} found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
