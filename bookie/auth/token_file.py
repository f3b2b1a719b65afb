"""The tokens of a bookie's data port in a file or an environment variable: one per line; `#` begins a comment line.

A line may state a role and a name for its token: `role:token` or `role:name:token`, with the roles `read`, `write`
and `admin`. A token alone grants every right. No part of a token appears in an error.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from bookie.auth.provider import EVERYTHING, Right
from bookie.errors import ConfigurationError
from bookie.secret_files import SecretRefused, read_secret_text

__all__ = ["parse", "read_tokens", "Token"]

VARIABLE = "BOOKIE_AUTH_TOKEN"
TOKEN_BYTES_MIN = 16
TOKEN_BYTES_MAX = 4096
TOKENS_MAX = 1000
"""A limit, because each login is compared with all tokens."""
ROLES = {"read": Right.READ, "write": Right.READ | Right.WRITE, "admin": EVERYTHING}
NAME = re.compile(r"[\w.@+-]{1,64}")


@dataclass(frozen=True, slots=True)
class Token:
    """A line of the file: a token with its name and its rights."""

    name: str
    rights: Right
    secret: bytes = field(repr=False)


def parse(lines: Iterable[str], where: str) -> tuple[Token, ...]:
    """Parse the lines. Raises ConfigurationError, which names the line."""
    rows = [(number, line.strip()) for number, line in enumerate(lines, 1)]
    tokens = tuple(_token(where, number, line) for number, line in rows if line and not line.startswith("#"))
    if not tokens:
        raise ConfigurationError(f"{where}: there is no token; add one of at least {TOKEN_BYTES_MIN} bytes")
    if len(tokens) > TOKENS_MAX:
        raise ConfigurationError(
            f"{where}: there are {len(tokens)} tokens, but at most {TOKENS_MAX} are allowed; remove old ones"
        )
    return tokens


def _token(where: str, number: int, line: str) -> Token:
    role, _, rest = line.partition(":")
    name, secret = f"line-{number}", line
    if role in ROLES:
        first, colon, last = rest.partition(":")
        name, secret = (first, last) if colon else (name, rest)
    if not NAME.fullmatch(name):
        reason, remedy = "has an invalid name", "use at most 64 letters, digits and .@+-_ in names"
    elif not TOKEN_BYTES_MIN <= len(secret.encode()) <= TOKEN_BYTES_MAX:
        reason, remedy = "is too short or too long", f"use {TOKEN_BYTES_MIN} to {TOKEN_BYTES_MAX} bytes"
    else:
        return Token(name, ROLES.get(role, EVERYTHING), secret.encode())
    raise ConfigurationError(f"{where}: the token of line {number} {reason}; {remedy}")


def read_tokens(path: str, environment: Mapping[str, str], *, strict: bool) -> tuple[Token, ...]:
    """Return the tokens in the file, or in the environment if `path` is empty. Raises ConfigurationError."""
    where = f"authTokenFile={path}" if path else f"environment variable {VARIABLE}"
    try:
        text = read_secret_text(path, strict=strict) if path else environment.get(VARIABLE, "")
    except SecretRefused as refused:
        raise ConfigurationError(f"{where}: {refused}") from None
    return parse(text.splitlines(), where)
