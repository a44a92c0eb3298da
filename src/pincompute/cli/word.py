"""How a person names a workload: `hello`, or `service/hello` where they want to be sure what it is."""

from __future__ import annotations

from typing import NamedTuple

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import KIND_UNKNOWN, WORKLOAD_UNKNOWN


class Word(NamedTuple):
    name: str
    kind: str = ""
    """Empty where none is said."""

    def must_be(self, kind: str) -> None:
        """What goes by this name may be of another kind than was thought."""
        if self.kind and self.kind != kind:
            what = f"there is no {plain(self.kind)} '{self.name}'"
            next_ = f"did you mean {plain(kind)}/{self.name}?"
            raise Refused(Problem(WORKLOAD_UNKNOWN, what, note=f"'{self.name}' is a {plain(kind)}", next=next_))


def word(said: str) -> Word:
    kind, slash, name = said.rpartition("/")
    return Word(name, kind_of(kind)) if slash else Word(said)


def kind_of(said: str) -> str:
    """By its own name, a short one as kubectl takes them, or the plain noun."""
    # Whoever says no kind does not wait for all of them.
    from pincompute.api.kinds import WORKLOADS

    lower = said.lower().replace("-", "").replace("_", "")
    for name, noun in WORKLOADS.items():
        if lower in {name.lower(), noun.plural(), plain(name), f"{plain(name)}s", *noun.SHORT_NAMES}:
            return name
    nouns = ", ".join(plain(each) for each in WORKLOADS)
    raise Refused(Problem(KIND_UNKNOWN, f"there is no kind '{said}'", note=f"the kinds are {nouns}"))


def plain(kind: str) -> str:
    """`jobset` of PinterestJobSet."""
    return kind.removeprefix("Pinterest").lower()
