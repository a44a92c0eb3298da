"""Verifies the signature of a token, and nothing else of it but its expiry."""

from __future__ import annotations

from joserfc import jws, jwt
from joserfc.errors import JoseError

from pincompute.desk.authn.signing_keys import ALGORITHMS, SigningKeys


async def signed_subject(token: str, keys: SigningKeys, now_s: float) -> str:
    """The claim `sub` of a token with a valid signature that has not expired; empty for any other.

    Raises Refused if there are no keys.
    """
    try:
        header = jws.extract_compact(token.encode()).headers()
        key_set = await keys.keys_for(str(header.get("kid", "")))
        claims = jwt.decode(token, key_set, algorithms=ALGORITHMS).claims
        return str(claims.get("sub", "")) if float(claims.get("exp", 0)) > now_s else ""
    except (JoseError, ValueError, TypeError, OverflowError):
        return ""
