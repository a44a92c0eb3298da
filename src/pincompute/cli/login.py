"""`pin login`: signs in to a desk, by an OpenID provider, a token or a client certificate."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click
import msgspec

from pincompute.api.whoami import SignIn
from pincompute.base.clock import Clock, SystemClock
from pincompute.base.platform_context import Context, find_context, read_context, write_context
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import DESK_UNREACHABLE, NAME_TAKEN, SIGN_IN_NOT_CONFIGURED, USAGE
from pincompute.base.saved_login import forget_login, read_login, write_login
from pincompute.base.settings import setting_value
from pincompute.base.urls import require_https
from pincompute.cli.device_login import DeviceCode, open_provider
from pincompute.cli.http_client import HttpClient, TransportError
from pincompute.cli.session_token import with_current_token
from pincompute.cli.tls_context import desk_tls_context

_DISCOVERY_TIMEOUT_S = 30.0


@click.command()
@click.argument("desk", default="")
@click.option("--name", "platform", help="Local name of the platform; `main` by default.")
@click.option("--trust", type=click.Path(path_type=Path, exists=True), help="CA certificate that signs the desk's.")
@click.option("--certificate", type=click.Path(path_type=Path, exists=True), help="Client certificate of a program.")
@click.option("--key", type=click.Path(path_type=Path, exists=True), help="Its key, if it is in another file.")
@click.option("--out", is_flag=True, help="Sign out and delete the saved login.")
def login(  # noqa: PLR0913  (each is an option)
    desk: str, platform: str | None, trust: Path | None, *, certificate: Path | None, key: Path | None, out: bool
) -> None:
    """Sign in to a desk, such as https://desk.example.com.

    It prints a URL and a code: open the URL on any device and confirm the code. From then on, commands with `--name
    NAME` use that desk with your login, which is renewed automatically. A program uses the token in the file that
    PIN_TOKEN names, or a client certificate.
    """
    name, state = setting_value("name", platform), Path(setting_value("state"))
    if out:
        asyncio.run(sign_out(state, name))
        click.echo(f"{name}: signed out")
        return
    context = _context_of(state, name, desk, trust)
    if certificate or key:
        context = _with_certificate(context, certificate, key)
        forget_login(state, name)
    if certificate or setting_value("token"):
        caller = asyncio.run(verify_credentials(state, context))
        click.echo(f"{caller}  accepted by {context.desk}        next: pin whoami")
        return
    user = asyncio.run(sign_in(state, context, SystemClock()))
    click.echo(f"{user}  signed in to {context.desk}        next: pin whoami")


def _context_of(state: Path, name: str, desk: str, trust: Path | None) -> Context:
    if not desk:
        return read_context(state, name)
    try:
        address = require_https(desk).rstrip("/")
    except ValueError as error:
        raise Refused(Problem(USAGE, str(error), next="pin login https://…")) from error
    existing = find_context(state, name)
    if existing and existing.desk != address:
        what = f"the name '{name}' is taken by the platform at {existing.desk}"
        raise Refused(Problem(NAME_TAKEN, what, next=f"pin login {desk} --name NAME"))
    context = existing or Context(name=name, desk=address, token="", kubeconfig="")
    return msgspec.structs.replace(context, authority=str(trust.resolve())) if trust else context


def _with_certificate(context: Context, certificate: Path | None, key: Path | None) -> Context:
    """Save the paths and not the contents: the files may be renewed at any time."""
    if certificate is None:
        raise Refused(Problem(USAGE, "--key needs --certificate", next="pin login DESK --certificate FILE --key FILE"))
    if not context.desk.startswith("https:"):
        what = f"--certificate needs a desk with TLS, and {context.desk} has none"
        raise Refused(Problem(USAGE, what, next="pin login https://… --certificate FILE"))
    files = {"identity": str(certificate.resolve()), "key": str(key.resolve()) if key else ""}
    return msgspec.structs.replace(context, token="", **files)


async def sign_in(state: Path, context: Context, clock: Clock) -> str:
    """Sign in interactively and return the user's name."""
    settings = await _fetch_sign_in_settings(context)
    async with open_provider(settings.issuer, settings.client, clock) as provider:
        code = await provider.request_device_code(settings.scopes)
        _print_instructions(code)
        saved_login = await provider.await_login(code)
    write_context(state, context)
    write_login(state, context.name, saved_login)
    from pincompute.cli.desk_client import open_desk_client

    async with open_desk_client(msgspec.structs.replace(context, token=saved_login.token)) as desk:
        return (await desk.whoami()).name


async def verify_credentials(state: Path, context: Context) -> str:
    """Check an existing token or certificate with the desk, save the context, and return the caller's name."""
    from pincompute.cli.desk_client import open_desk_client

    async with open_desk_client(await with_current_token(state, context)) as desk:
        name = (await desk.whoami()).name
    write_context(state, context)
    return name


async def sign_out(state: Path, name: str) -> None:
    """Delete the local login first, so that it is deleted even if the provider cannot be reached to revoke it."""
    saved_login = read_login(state, name)
    forget_login(state, name)
    context = find_context(state, name)
    if context and context.identity:
        write_context(state, msgspec.structs.replace(context, identity="", key=""))
    if saved_login:
        async with open_provider(saved_login.issuer, saved_login.client, SystemClock()) as provider:
            await provider.revoke_login(saved_login)


async def _fetch_sign_in_settings(context: Context) -> SignIn:
    try:
        async with (
            asyncio.timeout(_DISCOVERY_TIMEOUT_S),
            HttpClient(context.desk, {}, desk_tls_context(context)) as http,
            http.request("GET", "/v1/sign-in") as response,
        ):
            settings = msgspec.json.decode(await response.read(), type=SignIn)
    except (TransportError, TimeoutError, msgspec.DecodeError) as error:
        what = f"no desk answers at {context.desk}: {error or type(error).__name__}"
        raise Refused(Problem(DESK_UNREACHABLE, what, next="check the URL")) from error
    if not settings.issuer:
        what = f"the desk at {context.desk} has no sign-in: it accepts only its administrator token"
        raise Refused(Problem(SIGN_IN_NOT_CONFIGURED, what, next="pin whoami"))
    return settings


def _print_instructions(code: DeviceCode) -> None:
    url = code.complete_url or code.verification_url
    click.echo(f"open {url}\nand confirm the code {code.user_code}", err=True)
