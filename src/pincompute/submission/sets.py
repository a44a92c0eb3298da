"""A set: documents that were submitted together, and are taken whole or not at all."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import DOCUMENT_INVALID, SET_REFUSED
from pincompute.planning.quotas.footprint import Place
from pincompute.submission.record import Kept, Submission

MOST = 256
"""Documents of one set."""
_NAMED = 3
_MEND = "mend what was refused, and deploy the set again"


def too_many(count: int) -> Problem | None:
    if count <= MOST:
        return None
    return Problem(DOCUMENT_INVALID, f"a set of {count} documents was sent, and {MOST} are the most")


def together(submissions: Sequence[Submission], text: str) -> list[Submission]:
    """As the record keeps those of one set: each is the same again only with all the others, under the one key."""
    if len(submissions) == 1:
        return list(submissions)
    whole, first = hashlib.sha256(text.encode()).hexdigest(), submissions[0].id
    return [
        each._replace(
            about=f"{each.about}\0{whole}",
            # No header can say this: nobody's own key is the same.
            key=f"{each.key}\n{number}" if each.key and number else each.key,
            because="; ".join(filter(None, (each.because, f"of the set of {first}"))),
        )
        for number, each in enumerate(submissions)
    ]


def called(place: Place, number: int) -> str:
    """What has no name that can be read is known by where it stands."""
    return place.name or f"document {number}"


def spared(place: Place, because: Sequence[str]) -> Problem:
    """What was well by itself."""
    more = f" and {len(because) - _NAMED} more" if len(because) > _NAMED else ""
    others = ", ".join(because[:_NAMED]) + more
    what = f"{place.name} was not taken, because of {others} of the same set"
    return Problem(SET_REFUSED, what, Where(object=f"{place.project}/{place.name}"), next=_MEND)


def refusal(kept: Sequence[Kept]) -> Refused:
    """Of a set that the desk has refused: what is wrong, and what of it was well."""
    told = [problem for each in kept for problem in each.decisions[0].refusal().problems]
    wrong = [each for each in told if each.reason is not SET_REFUSED]
    well = [each.place.name for each in kept if each.decisions[0].rule == SET_REFUSED.code]
    if not well:
        return Refused(*wrong)
    more = f" and {len(well) - _NAMED} more" if len(well) > _NAMED else ""
    what = f"nothing of the set was taken; {', '.join(well[:_NAMED])}{more} would have been"
    return Refused(*wrong, Problem(SET_REFUSED, what, next=_MEND))
