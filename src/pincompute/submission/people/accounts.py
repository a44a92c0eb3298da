"""Programs that show a token of their Kubernetes account, which was made for the desk: the cluster says whose it is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec

from pincompute.api.identity import Identity, Sort
from pincompute.api.names import DESK
from pincompute.base.openid import claims
from pincompute.base.problem import Refused
from pincompute.kube.client import Client
from pincompute.submission.people.door import Shown, not_signed_in
from pincompute.submission.people.strangers import Strangers
from pincompute.submission.people.tokens import Remembered, audiences

AUDIENCE = DESK
"""A token that was made for somebody else, such as the API server, is not good here: who got it could be us."""
BELIEVED = timedelta(minutes=1)
"""Until it is asked again: the pod, or the account, may be gone."""
_ACCOUNT = "system:serviceaccount:"
_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"


class _User(msgspec.Struct, frozen=True):
    username: str = ""


class _Status(msgspec.Struct, frozen=True):
    authenticated: bool = False
    user: _User = _User()
    audiences: list[str] = []


class _Review(msgspec.Struct, frozen=True):
    status: _Status = _Status()


class Accounts:
    def __init__(self, client: Client, strangers: Strangers | None = None) -> None:
        self._client = client
        self._known = Remembered()
        self._strangers = strangers or Strangers(client.clock)

    async def identify(self, shown: Shown) -> Identity | None:
        now = self._client.clock.now()
        if who := self._known.find(shown.token.encode(), now):
            return who
        said = claims(shown.token)
        if AUDIENCE not in audiences(said):
            return None
        async with self._strangers.look(shown):
            whose = await self._whose(shown.token)
        until = datetime.fromtimestamp(said["exp"], UTC)
        who = Identity(whose, Sort.PROGRAM, until=until)
        self._known.keep(shown.token.encode(), who, min(until, now + BELIEVED))
        return who

    async def _whose(self, token: str) -> str:
        status = await self._review(token)
        whose = status.user.username.removeprefix(_ACCOUNT).split(":")
        named = status.user.username.startswith(_ACCOUNT) and len(whose) == 2
        if not (status.authenticated and AUDIENCE in status.audiences and named):
            raise Refused(not_signed_in("the cluster does not know the account of this token", "take a new one"))
        return "/".join(whose)

    async def _review(self, token: str) -> _Status:
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token, "audiences": [AUDIENCE]},
        }
        answer = await self._client.raw("POST", _REVIEWS, body=msgspec.json.encode(body))
        return msgspec.json.decode(answer, type=_Review).status
