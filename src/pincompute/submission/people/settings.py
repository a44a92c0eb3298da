"""How the desk was told to know people and programs, and the door that this makes."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import NamedTuple

from pincompute.api.whoami import SignIn
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import SETTING_INVALID
from pincompute.kube.addresses import safe
from pincompute.kube.client import Client
from pincompute.submission.people.accounts import Accounts
from pincompute.submission.people.certificates import Certificates
from pincompute.submission.people.door import Door, Vouches
from pincompute.submission.people.local import LocalToken
from pincompute.submission.people.strangers import Strangers
from pincompute.submission.people.tls import Files, context


class People(NamedTuple):
    token: str
    person: str
    issuer: str = ""
    client: str = ""
    scopes: str = ""
    name_claim: str = ""
    groups_claim: str = ""
    administrators: str = ""
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    client_roots: Path | None = None
    trust_domain: str = ""

    @classmethod
    def asked(cls) -> tuple[str, ...]:
        """All but the token, which stands in a file."""
        return tuple(each for each in cls._fields if each != "token")

    def door(self, client: Client) -> Door:
        # In a pod nobody is here.
        vouching: list[Vouches] = [LocalToken(self.token, self.person)] if self.token else []
        strangers = Strangers(client.clock)
        if self.issuer:
            vouching.append(self._provider(client, strangers))
        vouching.append(Accounts(client, strangers))
        if self.client_roots:
            if not self.trust_domain:
                raise _wrong("--client-roots needs --trust-domain: whose roots they are")
            vouching.append(Certificates(self.trust_domain, client.clock))
        return Door(vouching, "pin login" if self.issuer else "pin status")

    def _provider(self, client: Client, strangers: Strangers) -> Vouches:
        # What knows tokens takes a while to load, and a laptop has nobody to sign in.
        from pincompute.submission.people.openid import OpenId, OpenIdSettings

        try:
            safe(self.issuer)
        except ValueError as error:
            raise _wrong(f"--issuer: {error}") from error
        settings = OpenIdSettings(self.issuer, self.client, self.name_claim, self.groups_claim, self.administrators)
        return OpenId(settings, client.clock, strangers=strangers)

    def sign_in(self) -> SignIn:
        return SignIn(self.issuer, self.client, self.scopes) if self.issuer else SignIn()

    def tls(self) -> ssl.SSLContext | None:
        if self.tls_certificate and self.tls_key:
            return context(Files(self.tls_certificate, self.tls_key, self.client_roots))
        if self.tls_certificate or self.tls_key or self.client_roots:
            raise _wrong("--tls-certificate and --tls-key belong together, and --client-roots needs both")
        return None


def _wrong(what: str) -> Refused:
    return Refused(Problem(SETTING_INVALID, what, next="pin desk --help"))
