"""A browser as far as sign-in needs one: it keeps cookies by name, and says where a request comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import msgspec
from aiohttp import hdrs
from aiohttp.test_utils import TestClient

from fake_openid_provider import FakeProvider
from pincompute.desk.authn.authenticator import SESSION_COOKIE

SAME_ORIGIN = "same-origin"


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    text: str
    cookies: Mapping[str, str]
    """The headers Set-Cookie, by the name of the cookie."""

    @property
    def body(self) -> Any:
        return msgspec.json.decode(self.text)

    @property
    def reason(self) -> str:
        found: str = self.body["errors"][0]["reason"]
        return found


class Browser:
    """Has no cookie jar of aiohttp: that sends none of these cookies without TLS."""

    def __init__(self, http: TestClient[Any, Any], cookies: Mapping[str, str] | None = None) -> None:
        self._http = http
        self.cookies = dict(cookies or {})
        self.csrf = ""

    @property
    def origin(self) -> str:
        return str(self._http.make_url("")).rstrip("/")

    @property
    def session(self) -> str:
        return self.cookies.get(SESSION_COOKIE, "")

    def copy(self) -> Browser:
        """Another browser with the same cookies, as after a theft."""
        return Browser(self._http, self.cookies)

    async def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        csrf: str | None = None,
        site: str = SAME_ORIGIN,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """A request of a page of the desk; with another `site`, of a page elsewhere."""
        sent = {"Sec-Fetch-Site": site, hdrs.ORIGIN: self.origin if site == SAME_ORIGIN else "https://evil.example"}
        if method == "GET":
            del sent[hdrs.ORIGIN]
        if csrf is not None or self.csrf:
            sent["Pin-Csrf"] = self.csrf if csrf is None else csrf
        if self.cookies:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        data = None if body is None else msgspec.json.encode(body)
        async with self._http.request(
            method, path, data=data, headers={**sent, **(headers or {})}, allow_redirects=False
        ) as response:
            text = await response.text()
            set_ = response.headers.getall("Set-Cookie", ())
        cookies = {each.partition("=")[0]: each for each in set_}
        for name, header in cookies.items():
            value = header.partition("=")[2].partition(";")[0].strip('"')
            if value and "Max-Age=0" not in header:
                self.cookies[name] = value
            else:
                self.cookies.pop(name, None)
        return Answer(response.status, response.headers, text, cookies)

    async def open_link(self, token: str) -> Answer:
        """Signs in by a one-time link of the caller with this bearer token."""
        headers = {"Authorization": f"Bearer {token}"}
        async with self._http.post("/session/link", headers=headers) as response:
            link = await response.json()
        assert response.status == 201, link
        return await self.redeem(link["code"])

    async def redeem(self, code: str) -> Answer:
        answer = await self.send("POST", "/session", {"code": code})
        if answer.status == 200:
            self.csrf = answer.body["csrf"]
        return answer

    async def begin_openid(self, return_to: str = "/") -> dict[str, str]:
        """The query that the desk sends to the provider."""
        answer = await self.send("GET", f"/session/openid?returnTo={return_to}")
        assert answer.status == 303, answer.text
        return {name: value for name, (value,) in parse_qs(urlsplit(answer.headers["Location"]).query).items()}

    async def finish_openid(self, provider: FakeProvider, asked: Mapping[str, str], **claims: Any) -> Answer:
        """The return from a provider at which the user has signed in."""
        code = f"code-{len(provider.exchanges)}"
        provider.tokens[code] = provider.token(**{"aud": asked["client_id"], "nonce": asked["nonce"], **claims})
        return await self.send(
            "GET", f"/session/openid/callback?code={code}&state={asked['state']}", site="cross-site",
            headers={"Sec-Fetch-Mode": "navigate"},
        )  # fmt: skip
