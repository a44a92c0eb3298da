"""Faults put into the code on purpose, one at a time: the tests must see each. `make prove` runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "pincompute"


class Mutant(NamedTuple):
    file: str
    is_now: str
    becomes: str
    tests: str


_PEOPLE = "tests/submission/people"
_OWASP = "tests/submission/test_owasp.py"
_ACCEPT = "tests/submission/test_accept.py"
_SETS = "tests/submission/test_sets.py"
_DOORSTEP = "tests/submission/test_doorstep.py"

MUTANTS = (
    Mutant("planning/diff.py", "found.metadata.controller != owner_uid", "False", "tests/planning"),
    Mutant("planning/diff.py", "found.wanted != native", "found.wanted == native", "tests/planning"),
    Mutant("planning/diff.py", "if native.metadata.controller == owner_uid]", "]", "tests/planning"),
    Mutant("planning/diff.py", "if before is None or before == after:", "if True:", "tests/planning"),
    Mutant("planning/service.py", "each.template == made.digest", "True", "tests/planning"),
    Mutant("planning/snapshot.py", "not self.metadata.deletion_timestamp and", "", "tests/planning"),
    Mutant("planning/status.py", "before.last_transition_time if before and same else", "", "tests/planning"),
    Mutant("planning/diff.py", "known.instead is Instead.PODS_STAY", "False", "tests/planning"),
    Mutant("planning/adoption.py", "pods_stay=native.kind == MAKER", "pods_stay=False", "tests/planning"),
    Mutant("planning/adoption.py", "    if KIND not in metadata.labels:", "    if False:", "tests/planning"),
    Mutant("planning/adoption.py", "if each.metadata.controller and each.taken_up", "", "tests/planning"),
    Mutant("planning/adoption.py", "bool(_ours(snapshot)) and", "", "tests/planning"),
    Mutant("planning/importing/form.py", "name in others or ", "", "tests/planning/importing"),
    Mutant("controller/adopt.py", "if controller_uid(pod) != uid:", "if False:", "tests/controller/test_adopt.py"),
    Mutant("planning/training/gang.py", "    if not found.enough:\n", "    if False:\n", "tests/planning"),
    Mutant(
        "planning/training/gang.py", "missing >= self.least", "missing > self.least", "tests/planning/test_cases.py"
    ),
    Mutant("planning/fixed.py", '"replicas": 0', "**{}", "tests/planning/test_cases.py"),
    Mutant(
        "planning/pods/injection.py", "not each.provided.isdisjoint", "not each.provided.issubset", "tests/planning"
    ),
    Mutant("planning/pods/identity.py", "if not head else", "if True else", "tests/planning/pods/test_identity.py"),
    Mutant("planning/pods/identity.py", 'self._said("node-name")', '"node-1"', "tests/planning/pods/test_identity.py"),
    Mutant(
        "planning/pods/identity.py", "- USAGES)", "- set(request.spec.usages))", "tests/planning/pods/test_identity.py"
    ),
    Mutant("agents/identity/forms.py", "if not asked.approved:", "if True:", "tests/agents/identity/test_signer.py"),
    Mutant("agents/identity/asking.py", "_left(life, share) <= 0", "False", "tests/agents/identity/test_asking.py"),
    Mutant("agents/logs/kept.py", "os.truncate(self.path, before)", "pass", "tests/agents/logs"),
    Mutant("agents/logs/store.py", "len(batch.lines) > self._room", "False", "tests/agents/logs/test_store.py"),
    Mutant("engine/tend.py", "or renew.can(wanted, process)", "", "tests/engine/test_tend.py"),
    Mutant("planning/why/answers.py", "age < PATIENCE", "age > PATIENCE", "tests/planning"),
    Mutant("planning/why/ends.py", '"CrashLoopBackOff"', '"CrashLoop"', "tests/planning"),
    Mutant("planning/why/starts.py", '"runAsNonRoot" in words', "False", "tests/planning"),
    Mutant("planning/pods/pod.py", "cluster.simulated or owner.spec.simulated", "cluster.simulated", "tests/planning"),
    Mutant("planning/pods/pod.py", "in sorted(spec.environment)", "in spec.environment", "tests/planning"),
    Mutant("planning/pods/pod.py", '{**safe, "runAsNonRoot": False}', "safe", "tests/planning"),
    Mutant("planning/revision.py", '- {""}', "- files", "tests/planning"),
    Mutant("planning/runtimes/runtime.py", "if now > end or", "if", "tests/planning"),
    Mutant("planning/runtimes/runtime.py", "or hold.runtime < _broken(runtimes, turn)", "", "tests/planning"),
    Mutant("planning/pods/injection.py", "    if problems:\n", "    if False:\n", "tests/planning"),
    Mutant(
        "planning/pods/identity.py",
        "        if each.metadata.uid != expected:",
        "        if False:",
        "tests/planning/pods/test_identity.py",
    ),
    Mutant("planning/pods/identity.py", "if kinds not in CHAINS:", "if False:", "tests/planning/pods/test_identity.py"),
    Mutant("objects/svid.py", "who.trust_domain != trust_domain", "False", "tests/agents/identity"),
    Mutant("objects/svid.py", "len(names) != 1", "not names", "tests/agents/identity"),
    Mutant("agents/identity/signer.py", "except (Conflict, NotFound):", "except NotFound:", "tests/agents/identity"),
    Mutant("agents/identity/signer.py", "not event.object.answered", "True", "tests/agents/identity/test_signer.py"),
    Mutant(
        "planning/runtimes/roll.py",
        "max(1, share_of(share, pods, up=False))",
        "share_of(share, pods, up=False)",
        "tests/planning",
    ),
    Mutant("planning/project.py", '_scope("NotIn", by_class)', '_scope("In", by_class)', "tests/planning"),
    Mutant("planning/batch/runs.py", "run.revision not in", "run.revision in", "tests/planning"),
    Mutant(
        "planning/people/preview.py",
        "set(wanted) - {each.native for each in told}",
        "set(wanted)",
        "tests/planning/people/test_preview.py",
    ),
    Mutant("planning/people/edits.py", " and work(old) == work(new)", "", "tests/planning/people/test_edits.py"),
    Mutant("planning/people/history.py", "each.said != now", "True", "tests/planning/people/test_edits.py"),
    Mutant(
        "planning/people/answer.py", "waited < PATIENCE", "waited > PATIENCE", "tests/planning/people/test_answer.py"
    ),
    Mutant("planning/why/evidence.py", 'each.type == "Warning" and', "", "tests/planning/people/test_answer.py"),
    Mutant("controller/amend.py", "_edited(read) != _edited(before)", "False", "tests/submission"),
    Mutant("controller/amend.py", "spoken(found.spec) == spoken(wanted.spec)", "True", "tests/submission"),
    Mutant("api/documents.py", "if name in first:", "if False:", "tests/api"),
    Mutant("api/documents.py", "if isinstance(event, yaml.AliasEvent):", "if False:", "tests/api"),
    Mutant(
        "api/documents.py", "event.value if event.style else scalar(event.value)", "scalar(event.value)", "tests/api"
    ),
    Mutant("api/admission.py", "project and namespace and project != namespace", "False", "tests/api"),
    Mutant("api/admission.py", "or len(name) > most", "", "tests/api"),
    Mutant("api/admission.py", "if place in first:", "if False:", "tests/api/test_admission.py"),
    Mutant("api/manifests.py", 'key != "title" and', "", "tests/api"),
    Mutant("controller/loop.py", "if key not in self._busy:", "if True:", "tests/controller/test_loop.py"),
    Mutant("controller/loop.py", "elif again is not None:", "elif False:", "tests/controller/test_loop.py"),
    Mutant("controller/own.py", '"value": "Apply"', '"value": "Update"', "tests/controller"),
    Mutant(
        "controller/workloads.py",
        "raise Refused(_made_by_another(workload))",
        "raise error",
        "tests/submission/test_kubernetes.py",
    ),
    Mutant("controller/act.py", "controller_uid(found) != controller_uid(native)", "False", "tests/controller"),
    Mutant("controller/reconcile.py", "if status == owner.status:", "if False:", "tests/controller"),
    Mutant("kube/informer.py", "self._forget(key, self.items[key])\n", "pass\n", "tests/simulation/test_chances.py"),
    Mutant(
        "controller/loop.py",
        "return backoff(failures + 1, self._chance(), LONGEST_PAUSE)",
        "return None",
        "tests/simulation/test_chances.py",
    ),
    Mutant(
        "controller/reconcile.py",
        "return known and any(isinstance(each, Create) for each in difference.steps)",
        "return False",
        "tests/simulation/test_outages.py",
    ),
    Mutant("submission/connections.py", " if self._on is _On.NOTHING else None", "", _DOORSTEP),
    Mutant("submission/connections.py", "_On.ONE if knock else _On.WHO_KNOWS", "_On.ONE", _DOORSTEP),
    Mutant("submission/doorstep.py", " or name in fields", "", _DOORSTEP),
    Mutant("submission/doorstep.py", ' or head.count(b"\\n") != len(lines)', "", _DOORSTEP),
    Mutant("submission/people/local.py", "if not hmac.compare_digest(", "if not len and (", _PEOPLE),
    Mutant("submission/people/local.py", "if _is_loopback(shown.address) else None", "", _PEOPLE),
    Mutant("submission/people/openid.py", "if name.startswith(FOREIGN):", "if False:", _PEOPLE),
    Mutant("submission/people/openid.py", 'exp={"essential": True},', "", _PEOPLE),
    Mutant("submission/people/openid.py", "min(who.until, now + BELIEVED)", "who.until", _PEOPLE),
    Mutant("submission/people/keys.py", 'if said.get("issuer") != self._issuer:', "if False:", _PEOPLE),
    Mutant("submission/people/keys.py", "now - self._tried < PAUSE", "False", _PEOPLE),
    Mutant("submission/people/accounts.py", "if AUDIENCE not in audiences(said):", "if not said:", _PEOPLE),
    Mutant("submission/people/certificates.py", "if until <= now:", "if False:", _PEOPLE),
    Mutant("submission/people/certificates.py", "if len(who.path) != 2:", "if False:", _PEOPLE),
    Mutant("submission/decide.py", "await self._may(sender, ask.submission.verb, rendered.place)", "pass", _OWASP),
    Mutant(
        "submission/decide.py", "await self._may(sender, each.submission.verb, each.submission.place)", "pass", _OWASP
    ),
    Mutant("submission/guards.py", "if isinstance(what, Verb):", "if False:", _OWASP),
    Mutant("planning/rights.py", "if who.sort is Sort.PROGRAM:", "if False:", "tests/planning/test_may.py"),
    Mutant("planning/rights.py", "or not who.groups.isdisjoint(those.groups)", "", "tests/planning/test_may.py"),
    Mutant("planning/rights.py", "verb is not Verb.LOOK and kind ==", "kind ==", "tests/planning/test_may.py"),
    Mutant("submission/accept.py", "outbox.put(connection, Parcel(submission, rendered.order))", "pass", _ACCEPT),
    Mutant("submission/accept.py", "before.digest != submission.digest", "False", _ACCEPT),
    Mutant("submission/ledger.py", "ledger.c.written <= sql.", "ledger.c.written >= 0 * sql.", _ACCEPT),
    Mutant("submission/kubernetes.py", " and place not in self._sent", "", "tests/submission/test_kubernetes.py"),
    Mutant("submission/ledger.py", "sql.func.max(ledger.c[each]).label", "sql.func.min(ledger.c[each]).label", _ACCEPT),
    Mutant("submission/ledger.py", "sql.func.max(ledger.c[each]) for", "sql.func.min(ledger.c[each]) for", _ACCEPT),
    Mutant("planning/quotas/allowance.py", " if each != own}", "}", _SETS),
    Mutant("planning/quotas/allowance.py", "together((wants, tier.get(own, NOTHING)))", "wants", _SETS),
    Mutant("planning/quotas/allowance.py", "            taken.append(place)", "            pass", _SETS),
    Mutant("submission/desk.py", "refuse_if(forged(workload, known))", "pass", "tests/submission/test_builds.py"),
    Mutant("submission/desk.py", "refuse_if(forged(workload, let_in))", "pass", "tests/submission/test_builds.py"),
    Mutant("submission/desk.py", "planned.get(rendered.place.project, rendered.project)", "rendered.project", _SETS),
    Mutant("planning/quotas/allowance.py", "wants > has and others", "others", _ACCEPT),
    Mutant(
        "planning/quotas/footprint.py",
        "yield replicas + surge,",
        "yield replicas,",
        "tests/planning/quotas/test_footprint.py",
    ),
    Mutant("base/private.py", "MODE = 0o600", "MODE = 0o644", "tests/base"),
    Mutant("base/settings.py", "if flag is not None:", "if False:", "tests/base"),
)

RACES = (
    Mutant(
        "controller/reconcile.py", "if not self._sees_own_writes(key):", "if False:", "PinterestService --ways late"
    ),
    Mutant(
        "controller/reconcile.py",
        "self._ended[key].add(step.uid)\n            self._wrote(key, after)",
        "self._ended[key].add(step.uid)",
        "PinterestService --ways late",
    ),
    Mutant(
        "controller/reconcile.py",
        "                self._ended[key].add(step.uid)\n",
        "                pass\n",
        "PinterestJobSet --ways late",
    ),
    Mutant(
        "controller/reconcile.py",
        "        self._wrote(key, after)\n        self._told",
        "        self._told",
        "PinterestService --ways late aside",
    ),
    Mutant(
        "controller/reconcile.py",
        "return _Done(tuple(done), overtaken=error.message)",
        "continue",
        "PinterestService --ways overtaken",
    ),
    Mutant(
        "controller/reconcile.py",
        "return Made(Outcome.REFUSED, again, steps, Refused(*problems).text())",
        "return Made(Outcome.WROTE, again, steps)",
        "tests/simulation/test_outages.py",
    ),
    Mutant(
        "controller/reconcile.py",
        "        done = await self._act(key, difference)\n",
        "        await self._report(key, snapshot.owner, plan.status)\n"
        "        done = await self._act(key, difference)\n",
        "PinterestService --ways before lost",
    ),
    Mutant(
        "controller/act.py",
        "namespace, uid=step.uid, propagation=propagation",
        "namespace, propagation=propagation",
        "PinterestService --ways robbed",
    ),
    Mutant(
        "controller/act.py",
        'fenced = {**native, "metadata": {**metadata, "uid": uid}}',
        "fenced = native",
        "PinterestService --ways robbed",
    ),
    Mutant(
        "controller/act.py",
        "if controller_uid(found) != controller_uid(native):",
        "if False:",
        "PinterestService --ways robbed",
    ),
    Mutant(
        "controller/act.py",
        "if controller_uid(found) != controller_uid(native):",
        "if True:",
        "PinterestService --ways unanswered",
    ),
    Mutant(
        "controller/act.py",
        '"deleteOptions": {"preconditions": {"uid": uid}},',
        "",
        "PinterestStatefulSet --ways late unanswered",
    ),
    Mutant(
        "controller/hands.py",
        "before._replace(ours=_record(native).ours)",
        "_record(native)",
        "PinterestService --ways meddled",
    ),
    Mutant(
        "controller/loop.py",
        "if key in self._causes:\n            self._put(key)\n        elif again",
        "if again",
        "tests/controller/test_loop.py",
    ),
    Mutant("controller/loop.py", "                self.touch(key, Cause.AGAIN)\n", "", "PinterestService --ways stood"),
    Mutant(
        "controller/report.py",
        '            "resourceVersion": seen.resource_version,\n',
        "",
        "tests/simulation/test_fences.py",
    ),
    Mutant(
        "operator/fence.py", "if not request.safe and not self._leads():", "if False:", "PinterestService --ways slept"
    ),
    Mutant("operator/loops.py", "        await self.view.synced()\n", "", "Runtime --ways before lost"),
    Mutant("planning/diff.py", " if native.metadata.controller == owner_uid]", "]", "PinterestService --ways robbed"),
    Mutant(
        "planning/diff.py",
        "elif found.metadata.controller != owner_uid:",
        "elif False:",
        "PinterestService --ways robbed",
    ),
    Mutant(
        "planning/batch/attempts.py",
        "seen = next(iter(jobs(snapshot, found, number).values()), None)",
        "seen = None",
        "tests/planning/test_cases.py",
    ),
    Mutant(
        "planning/batch/attempts.py",
        "[each for each in begun if each > snapshot.owner.status.revision]",
        "[]",
        "tests/planning/test_cases.py",
    ),
    Mutant(
        "planning/job_set.py",
        "if record.ended and _keeping(snapshot, record) > 0:",
        "if False:",
        "PinterestJobSet --ways before lost",
    ),
    Mutant(
        "planning/cron_job.py",
        "ran_now=runs.made(owner, found),",
        "ran_now=max(runs.made(owner, found), runs.asked(owner)),",
        "PinterestCronJob --ways unheard broken full",
    ),
    Mutant(
        "planning/runtimes/in_place.py",
        "if held and seen.taken_up else ()",
        "if held else ()",
        "tests/planning/test_cases.py",
    ),
    Mutant(
        "planning/runtimes/in_place.py", "if held and not there.taken_up:", "if False:", "tests/planning/test_cases.py"
    ),
    Mutant(
        "planning/runtimes/in_place.py",
        "waits = held and not (",
        "waits = False and not (",
        "tests/planning/test_cases.py",
    ),
    Mutant(
        "planning/runtimes/runtime_roll.py",
        "if health.cursor != cursor:\n        return Step",
        "if False:\n        return Step",
        "tests/planning/runtimes",
    ),
)
"""Wrong only where something goes wrong at a write, or somebody else is quicker: the simulator sees most of them."""


def survives(mutant: Mutant) -> bool:
    """Whether the tests pass all the same. The file is as it was afterwards, whatever happens."""
    file = SOURCE / mutant.file
    before = file.read_text()
    assert before.count(mutant.is_now) == 1, f"{mutant.file}: '{mutant.is_now}' must stand there once"
    try:
        file.write_text(before.replace(mutant.is_now, mutant.becomes))
        simulated = [sys.executable, "-m", "simulation", *mutant.tests.split(), "--first", "--seeds", "0"]
        tested = [sys.executable, "-m", "pytest", "-x", "-q", mutant.tests]
        words = tested if mutant.tests.startswith("tests/") else simulated
        return subprocess.run(words, cwd=ROOT, capture_output=True, check=False).returncode == 0
    finally:
        file.write_text(before)


def main(words: list[str]) -> int:
    """All of them, or those of the files and finders that the words name."""
    chosen = [each for each in (*MUTANTS, *RACES) if not words or any(word in each for word in words)]
    missed = []
    for mutant in chosen:
        if lives := survives(mutant):
            missed.append(mutant)
        print(f"{'MISSED' if lives else 'found '}  {mutant.file}: {mutant.is_now}  ->  {mutant.becomes}", flush=True)
    print(f"{len(chosen) - len(missed)} of {len(chosen)} found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
