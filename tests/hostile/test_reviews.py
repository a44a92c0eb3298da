"""Attacks on reviewed builds by a tenant who can push to the repository, to its review notes, and knows the rules."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path

import msgspec
import pytest

from pincompute.admission import commits
from pincompute.api import attestation
from pincompute.api.attestation import fingerprint, public_key_text, sign_statement
from pincompute.api.build import REVIEW_NOTES_REF, review_statement
from pincompute.base.problem import Refused
from pincompute.desk import repository
from pincompute.desk.git_process import GitCommand, GitResult, run_git
from pincompute.desk.store.record import accepted_commits
from pushed_repository import ANN, BEN, CARLA, EVE, PushedRepository, codes, fast_import, pushed_repository
from signed_builds import TEXT, signing_key, trusted_keys

LATER = TEXT.replace("8080", "9090")


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncGenerator[PushedRepository]:
    async with pushed_repository(tmp_path) as pushed:
        yield pushed


async def test_unreviewed_commit_below_a_reviewed_one_is_named(shop: PushedRepository) -> None:
    await shop.release("1.0")
    evil = shop.commit("Speed up the start", by=EVE)
    harmless = shop.commit("Fix a typo", files={"shop.yaml": LATER})
    shop.review(harmless, BEN)
    shop.publish("1.1", text=LATER)
    refused = await shop.refusal("1.1")
    assert codes(refused) == ["NotReviewed"]
    assert refused.text() == (
        f"ads/shop 1.1: 1 commit below {harmless[:12]} lacks reviews and would be deployed with it  [NotReviewed]\n"
        f'  {evil[:12]} "Speed up the start" by {EVE}: 0 of 1 reviews; eligible: {ANN}, {BEN}, {CARLA}\n'
        "  an administrator can accept the history up to a commit: landing.since of the project\n"
        f"  next: pin review {evil[:12]}"
    )
    # An override is for exactly this.
    build = await shop.builds.find_build("ads", "shop", "1.1")
    assert (await shop.builds.verify_build(build, shop.project, break_glass=True)).version == "1.1"
    # After a review it is deployed.
    shop.review(evil, BEN)
    await shop.deploy("1.1")
    # Commits below an accepted build are not examined again.
    await shop.release("1.2")


async def test_all_unreviewed_commits_are_counted_and_the_newest_listed(shop: PushedRepository) -> None:
    await shop.release("1.0")
    evil = [shop.commit(f"Change {number}", by=EVE) for number in range(12)]
    shop.review(evil[3], BEN)
    shop.publish("1.1")
    refused = (await shop.refusal("1.1")).problems
    assert [each.what.partition(" by ")[0] for each in refused] == [
        f'commit {evil[-1][:12]} "Change 11"',
        f"10 commits below {evil[-1][:12]} lack reviews and would be deployed with it",
    ]
    listed = refused[1].note.splitlines()[:10]
    assert [line[:12] for line in listed] == [each[:12] for each in (*evil[10:3:-1], *evil[2::-1])]


async def test_first_build_needs_its_whole_history_reviewed(shop: PushedRepository) -> None:
    first = shop.commit("Begin", by=EVE, files={"shop.yaml": TEXT})
    second = shop.commit("Continue")
    shop.review(second, BEN)
    shop.publish("1.0")
    refused = await shop.refusal("1.0")
    assert f'{first[:12]} "Begin" by {EVE}: 0 of 1 reviews' in refused.text()
    assert "no build of project ads was accepted yet, so its whole history counts" in refused.text()
    # An administrator accepts what was there before.
    shop.use_landing(since="0" * 40)
    assert "landing.since of the project is 000000000000, which is not in the repository" in (
        (await shop.refusal("1.0")).text()
    )
    shop.use_landing(since=first)
    await shop.deploy("1.0")
    # This vouches for what is below a build. The commit of a build is always reviewed itself.
    shop.publish("0.9", commit=first)
    assert codes(await shop.refusal("0.9")) == ["NotReviewed"]


async def test_history_of_another_project_vouches_for_nothing(shop: PushedRepository) -> None:
    await shop.release("1.0")
    found = [await shop.database.transact(partial(accepted_commits, project=name)) for name in ("ads", "search")]
    assert [len(each) for each in found] == [1, 0]


async def test_merge_is_reviewed_with_all_that_it_brings_in(shop: PushedRepository) -> None:
    await shop.release("1.0")
    shop.git("checkout", "-q", "-b", "side")
    shop.commit("Hide something", by=BEN, files={"hidden.txt": "evil"})
    shop.git("checkout", "-q", "main")
    shop.git("merge", "-q", "--no-ff", "-m", "Merge side", "side", by=EVE)
    shop.review(shop.head(), BEN)
    shop.publish("1.1")
    # Ben is an author of it, though neither of the merge commit nor of its first parent.
    assert "has 0 of 1 reviews" in (await shop.refusal("1.1")).text()
    shop.review(shop.head(), CARLA)
    await shop.deploy("1.1")


async def test_swapped_parents_do_not_hide_commits(shop: PushedRepository) -> None:
    """A fast-forward to a side branch that has merged main: git shows main's commits as those of the side."""
    await shop.release("1.0")
    shop.git("checkout", "-q", "-b", "side")
    evil = shop.commit("Hide something", by=EVE, files={"hidden.txt": "evil"})
    shop.git("checkout", "-q", "main")
    landed = shop.commit("Reviewed work", files={"good.txt": "good"})
    shop.review(landed, BEN)
    shop.git("checkout", "-q", "side")
    shop.git("merge", "-q", "--no-ff", "-m", "Merge main", "main", by=EVE)
    merged = shop.head()
    shop.git("checkout", "-q", "main")
    shop.git("merge", "-q", "--ff-only", "side")
    assert shop.head() == merged
    shop.review(merged, CARLA)
    shop.publish("1.1")
    refused = await shop.refusal("1.1")
    assert [each.next for each in refused.problems] == [f"pin review {evil[:12]}"]


async def test_rewritten_history_is_verified_again(shop: PushedRepository, tmp_path: Path) -> None:
    first = await shop.release("1.0")
    await shop.release("1.1")
    # The branch is replaced by a new root with everything in it, and something more.
    shop.git("checkout", "-q", "--orphan", "new")
    root = shop.commit("Shop, cleaned up", by=EVE, files={"hidden.txt": "evil", "shop.yaml": TEXT})
    tip = shop.commit("Fix a typo")
    shop.review(tip, BEN)
    shop.git("branch", "-f", "main", "new")
    shop.publish("2.0")
    for _ in range(2):
        refused = await shop.refusal("2.0")
        assert f'{root[:12]} "Shop, cleaned up" by {EVE}: 0 of 1 reviews' in refused.text()
        # The same on a desk that has never seen the former history.
        shutil.rmtree(tmp_path / "mirrors")
        shop.git("gc", "-q", "--prune=now")
        shop.restart_desk()
    # Going back to a former commit, and on from there, needs nothing but reviews.
    shop.git("checkout", "-q", "-B", "main", first)
    await shop.release("1.2")
    shutil.rmtree(tmp_path / "mirrors")
    shop.restart_desk()
    await shop.release("1.3")


async def test_names_and_addresses_prove_nothing(shop: PushedRepository) -> None:
    await shop.release("1.0")
    # Everything in a commit and in a note is what Eve wrote there.
    tip = shop.commit("Reviewed-by: Ben\n\nReviewed-by: Ben <ben@example.com>", by=CARLA)
    statement = review_statement(tip, BEN, "2026-01-01T00:00:00Z")
    own = sign_statement(statement, signing_key(EVE))
    claims = [
        msgspec.structs.replace(each, keyid=fingerprint(public_key_text(signing_key(BEN)))) for each in own.signatures
    ]
    shop.note(tip, own, msgspec.structs.replace(own, signatures=claims), "Reviewed-by: ben@example.com", "{}")
    shop.note(tip, sign_statement(review_statement(shop.git("rev-parse", "HEAD~1"), BEN, ""), signing_key(BEN)))
    shop.publish("1.1")
    assert "has 0 of 1 reviews" in (await shop.refusal("1.1")).text()


@pytest.mark.parametrize(
    "message", ["Work", f"Work\n\nCo-authored-by: Ben <{BEN.upper()}>", f"Work\n\nco-authored-by: {BEN}"]
)
async def test_no_author_reviews_own_work(shop: PushedRepository, message: str) -> None:
    await shop.release("1.0")
    commit = shop.commit(message, by=ANN if "uthored" in message else BEN.title())
    shop.review(commit, BEN)
    shop.publish("1.1")
    assert "has 0 of 1 reviews" in (await shop.refusal("1.1")).text()


async def test_commit_cannot_write_to_the_terminal(shop: PushedRepository) -> None:
    await shop.release("1.0")
    shop.commit("\x1b[2J\x1b[H all reviewed \u202e" + "x" * 500, by=EVE)
    shop.review(shop.commit("Fine"), BEN)
    shop.publish("1.1")
    text = (await shop.refusal("1.1")).text()
    assert "?[2J?[H all reviewed ?" in text
    assert "x" * 60 not in text
    assert all(each.isprintable() for each in text.splitlines())


async def test_revoked_key_rolls_nothing_back(shop: PushedRepository) -> None:
    await shop.release("1.0", BEN)
    stolen = await shop.deploy("1.0")
    await shop.release("1.1", CARLA)
    await shop.rollback(stolen)
    # Ben's key was stolen. His reviews stop counting, also if he gets another one.
    for people in (trusted_keys(ANN, CARLA), {**trusted_keys(ANN, CARLA), BEN: trusted_keys("new")["new"]}):
        shop.use_landing(people=people)
        with pytest.raises(Refused, match="has 0 of 1 reviews"):
            await shop.rollback(stolen)
        assert codes(await shop.refusal("1.0")) == ["NotReviewed"]
    # More reviewers are required than when it was accepted.
    shop.use_landing(reviewers=2)
    with pytest.raises(Refused, match="has 1 of 2 reviews"):
        await shop.rollback(stolen)
    shop.use_landing(builders=trusted_keys("other"))
    with pytest.raises(Refused, match="not signed by a builder"):
        await shop.rollback(stolen)


async def test_builds_accepted_by_a_revoked_key_vouch_for_nothing(shop: PushedRepository) -> None:
    evil = await shop.release("1.0", BEN, by=EVE)
    shop.use_landing(people=trusted_keys(ANN, CARLA))
    shop.review(shop.commit("Fine"), CARLA)
    shop.publish("1.1")
    text = (await shop.refusal("1.1")).text()
    assert f'{evil[:12]} "Release 1.0" by {EVE}: 0 of 1 reviews' in text
    assert "builds accepted before that no longer count, as keys of their reviewers were removed: 1" in text
    # If the key was not stolen, the administrator says so.
    shop.use_landing(people=trusted_keys(ANN, CARLA), since=evil)
    await shop.deploy("1.1")


async def test_rollback_works_while_store_and_repository_are_unavailable(
    shop: PushedRepository, tmp_path: Path
) -> None:
    await shop.release("1.0")
    before = await shop.deploy("1.0")
    await shop.release("1.1")
    shutil.rmtree(shop.store)
    shop.top.rename(tmp_path / "gone")
    await shop.rollback(before)
    # Deployments wait for the repository.
    (tmp_path / "gone").rename(shop.top)
    shop.publish("1.2")
    shop.top.rename(tmp_path / "gone")
    assert codes(await shop.refusal("1.2")) == ["RepositoryFailed"]


async def test_rollback_to_other_content_under_the_name_of_a_build_is_refused(shop: PushedRepository) -> None:
    await shop.release("1.0")
    genuine = await shop.deploy("1.0")
    forged = msgspec.structs.replace(genuine.spec, environment={"SEND_ALL_TO": "eve"})
    with pytest.raises(Refused, match="not written by the desk"):
        await shop.rollback(msgspec.structs.replace(genuine, spec=forged))


async def test_huge_notes_are_not_read(shop: PushedRepository) -> None:
    await shop.release("1.0")
    flooded = shop.commit("Work")
    shop.review(flooded, BEN)
    shop.note(flooded, *("x" * 100_000 for _ in range(3)))
    shop.publish("1.1")
    text = (await shop.refusal("1.1")).text()
    assert "its notes have 300," in text
    assert "and at most 65,536 are read" in text
    # The next commit lacks nothing else.
    shop.review(shop.commit("More work"), BEN)
    shop.publish("1.2")
    assert "its notes have 300," in (await shop.refusal("1.2")).text()


async def test_notes_are_read_up_to_a_total(shop: PushedRepository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repository, "MAX_NOTES_BYTES", 2_000)
    await shop.release("1.0")
    work = [shop.commit(f"Work {number}") for number in range(6)]
    for each in work:
        shop.review(each, BEN)
    shop.publish("1.1")
    text = (await shop.refusal("1.1")).text()
    assert "the notes of all commits have more than 2,000 bytes" in text
    assert "[NotReviewed]" in text


async def test_forged_signatures_cost_a_bounded_number_of_checks(
    shop: PushedRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = 0
    verifies = attestation._verifies  # noqa: SLF001

    def counted(*args: object) -> bool:
        nonlocal checks
        checks += 1
        return verifies(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(attestation, "_verifies", counted)
    monkeypatch.setattr(attestation.KeyRing.__init__, "__defaults__", (200,))
    await shop.release("1.0")
    tip = shop.commit("Work")
    forged = sign_statement(review_statement(tip, BEN, ""), signing_key(EVE))
    shop.note(tip, *[msgspec.structs.replace(forged, signatures=forged.signatures * 40)] * 4)
    below = tip
    tip = shop.commit("More work")
    shop.review(tip, BEN)
    shop.publish("1.1")
    checks = 0
    text = (await shop.refusal("1.1")).text()
    assert f"{below[:12]} " in text
    assert "too many signatures by unknown keys: not all of them were verified" in text
    # One key ring for the accepted builds, one for this build, and the builder's.
    assert checks <= 2 * 200 + 1


async def test_notes_are_found_in_any_number_of_folders(shop: PushedRepository) -> None:
    """As git arranges them when there are many, and all at once as an attacker could."""
    await shop.release("1.0")
    tip = shop.commit("Work")
    shop.publish("1.1")
    review = msgspec.json.encode(sign_statement(review_statement(tip, BEN, ""), signing_key(BEN))).decode()
    for path in (
        f"{tip[:2]}/{tip[2:]}",
        f"{tip[:2]}/{tip[2:4]}/{tip[4:]}",
        f"{tip[:2]}/{tip[2:4]}/{tip[4:6]}/{tip[6:]}",
    ):
        before = shop.git("rev-parse", REVIEW_NOTES_REF)
        kind, object_id = "blob", shop.git("hash-object", "-w", "--stdin", sent=review)
        for name in reversed(path.split("/")):
            mode = "100644" if kind == "blob" else "040000"
            # The other notes, at the top.
            others = shop.git("ls-tree", before) + "\n" if name == path.split("/")[0] else ""
            kind, object_id = "tree", shop.git("mktree", sent=f"{others}{mode} {kind} {object_id}\t{name}\n")
        shop.git("update-ref", REVIEW_NOTES_REF, shop.git("commit-tree", object_id, "-p", before, "-m", "x"))
        await shop.deploy("1.1")
        shop.git("update-ref", REVIEW_NOTES_REF, before)
    assert codes(await shop.refusal("1.1")) == ["NotReviewed"]


async def test_many_commits_are_refused_and_not_verified(
    shop: PushedRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[GitCommand] = []

    async def counted(folder: Path, command: GitCommand, *more: object) -> GitResult:
        commands.append(command)
        return await run_git(folder, command, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(repository, "run_git", counted)
    base = await shop.release("1.0")
    fast_import(
        shop.top,
        [
            f"commit refs/heads/main\ncommitter e <{EVE}> {number} +0000\ndata 4\nWork\n"
            + (f"from {base}\n" if not number else "")
            for number in range(commits.MAX_COMMITS + 10)
        ],
    )
    shop.git("reset", "-q", "--hard", "main")
    shop.review(shop.commit("Fine"), BEN)
    shop.publish("1.1")
    commands.clear()
    refused = await shop.refusal("1.1")
    assert codes(refused) == ["NotReviewed"]
    assert f"more than 1,000 commits since {base[:12]} would have to be verified" in refused.text()
    assert len(commands) < 15
    # In steps it is possible, and an administrator can accept all of it.
    shop.use_landing(since=shop.git("rev-parse", "HEAD~1"))
    await shop.deploy("1.1")


async def test_merge_of_too_many_commits_is_refused(shop: PushedRepository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repository, "MAX_COMMITS", 5)
    await shop.release("1.0")
    shop.git("checkout", "-q", "-b", "side")
    for number in range(8):
        shop.commit(f"Work {number}", files={"side.txt": str(number)})
    shop.git("checkout", "-q", "main")
    shop.git("merge", "-q", "--no-ff", "-m", "Merge side", "side")
    shop.review(shop.head(), BEN)
    shop.publish("1.1")
    assert codes(await shop.refusal("1.1")) == ["RepositoryTooLarge"]


async def test_huge_files_and_commits_are_not_read(shop: PushedRepository, monkeypatch: pytest.MonkeyPatch) -> None:
    await shop.release("1.0")
    monkeypatch.setattr(repository, "MAX_ARTIFACT_BYTES", 10_000)
    shop.review(shop.commit("Grow", files={"shop.yaml": "#" * 100_000}), BEN)
    shop.publish("1.1")
    refused = await shop.refusal("1.1")
    assert codes(refused) == ["RepositoryTooLarge"]
    assert "shop.yaml in commit" in refused.text()
    assert "has more than 10,000 bytes" in refused.text()
    monkeypatch.undo()
    monkeypatch.setattr(repository, "MAX_LOG_BYTES", 10_000)
    names = "\n".join(f"Co-authored-by: {number}@example.com" for number in range(1_000))
    shop.review(shop.commit(f"Together\n\n{names}", files={"shop.yaml": TEXT}), BEN)
    shop.publish("1.2")
    assert "the data of the commits up to" in (await shop.refusal("1.2")).text()


async def test_huge_fetch_is_interrupted_and_leaves_nothing(
    shop: PushedRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await shop.release("1.0")
    monkeypatch.setattr(repository, "MAX_FETCHED_FILE_BYTES", 1 << 20)
    (shop.top / "model.bin").write_bytes(os.urandom(3 << 20))
    shop.review(shop.commit("Add a model"), BEN)
    shop.publish("1.1")
    refused = await shop.refusal("1.1")
    assert codes(refused) == ["RepositoryTooLarge"]
    assert "a fetch would write a file of more than 1,048,576 bytes" in refused.text()
    assert list((tmp_path / "mirrors").rglob("tmp_*")) == []
    monkeypatch.undo()
    await shop.deploy("1.1")


@pytest.mark.parametrize(
    "address",
    [
        "http://git.example.com/shop", "git://git.example.com/shop", "HTTP://git.example.com/shop", "ext::sh -c id",
        "http://localhost.example.com/shop", "http://git.example.com?@localhost/shop", "fd::7",
        "http://127.0.0.1@git.example.com/shop", "ftp://127.0.0.1/shop", "http::https://git.example.com/shop",
    ],
)  # fmt: skip
async def test_unprotected_addresses_are_not_asked(
    shop: PushedRepository, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the project was written with kubectl, past `pin plan`."""

    async def never(*_: object) -> GitResult:
        raise AssertionError("git was called")

    monkeypatch.setattr(repository, "run_git", never)
    shop.commit("Begin")
    shop.publish("1.0")
    shop.use_landing(repository=address)
    refused = await shop.refusal("1.0")
    assert codes(refused) == ["RepositoryRefused"]
    assert "must be https://, ssh://" in refused.text()
