"""Authentication and authorization at the admin ports, over gRPC and HTTP alike; and the audit log of changes.

    access = Access(control.access)                       # reads the files; ConfigError names what is wrong
    caller = access.caller("Bearer 8d1f…", ["ops.example"])     # identifies the caller; NotAuthenticated
    access.require(caller, Role.OPERATE)                  # RoleMissing

Used by any thread. A caller presents a bearer token, a certificate that TLS has verified, or both; the higher role
counts. The token that the bookie has created for its own user (`bookie.admin_port.own_token`) is accepted in addition
to those of the configuration. If the configuration has no tokens, which is allowed on loopback addresses only, a
caller without credentials may read metrics. With `adminInsecureAllowed` and no tokens, every caller may do everything.

Tokens are compared in constant time, always with all known tokens. A token is never logged or part of an error.
"""

import hashlib
import hmac
import logging
import re
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bookie.changed_files import ChangedFiles
from bookie.errors import SecurityError
from bookie.secret_files import SecretRefused, read_secret_text
from bookie.server.configuration.errors import ConfigError
from bookie.server.configuration.settings import AccessSettings
from bookie_admin.auditing import LineLimit
from bookie_admin.roles import Role

__all__ = ["Access", "audit", "Caller", "NotAuthenticated", "Role", "RoleMissing"]

TOKEN_BYTES_MIN, TOKEN_BYTES_MAX = 16, 4096
BEARER = "bearer "
NAME = re.compile(r"[\w.@+-]{1,64}")
ANYBODY = "local"
"""The name of a caller without credentials, where the configuration requires none."""

STRANGERS = (ANYBODY, "unknown")

log = logging.getLogger(__name__)
_strangers = LineLimit()


class NotAuthenticated(SecurityError):
    """The caller has no credentials, or unknown ones (HTTP 401, gRPC UNAUTHENTICATED)."""


class RoleMissing(SecurityError):
    """The caller is known, but its role does not permit the call (HTTP 403, gRPC PERMISSION_DENIED)."""


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller, by the name that the audit log uses.

    Attributes:
        name: `token:NAME`, `certificate:NAME` or `local`.
        role: the highest role of its credentials.
    """

    name: str
    role: Role


@dataclass(frozen=True, slots=True, repr=False)
class _Token:
    digest: bytes
    caller: Caller


class Access:
    """The access rules of one bookie. A tokens file that changes is read again.

    Args:
        settings: the settings of the admin ports.
        own_token: the file with the bookie's own token; it may be missing.

    Raises:
        ConfigError: the tokens file or the list of TLS subjects is invalid.
    """

    def __init__(self, settings: AccessSettings, own_token: Path | None = None) -> None:
        self._settings = settings
        self._subjects = _subjects(settings.tls_subjects)
        self._lock = threading.Lock()
        own = str(own_token) if own_token is not None and own_token.exists() else ""
        # Guarded by _lock:
        self._file = ChangedFiles(settings.tokens_file)
        self._tokens = _read_tokens(settings.tokens_file)
        self._own = _read_tokens(own)

    @property
    def guarded(self) -> bool:
        """Whether the configuration names tokens or certificates."""
        return self._settings.guarded

    @property
    def open(self) -> bool:
        """Whether every caller that reaches the port may do everything."""
        return self._settings.insecure_allowed and not self.guarded

    def caller(self, authorization: str | None = None, subjects: Iterable[str] = ()) -> Caller:
        """Identify a caller.

        Args:
            authorization: the header `authorization`, or None.
            subjects: the names in the client's verified certificate.

        Raises:
            NotAuthenticated: the credentials are missing or unknown.
        """
        if self.open:
            return Caller(ANYBODY, Role.ADMIN)
        found = [caller for caller in (self._by_token(authorization), self._by_subject(subjects)) if caller]
        if found:
            return max(found, key=lambda caller: caller.role)
        if not (self.guarded or authorization):
            return Caller(ANYBODY, Role.METRICS)
        raise self._unknown("the token is unknown" if authorization else "no token was sent")

    def is_known(self, authorization: str | None) -> bool:
        """Return whether this header identifies a caller, a certificate may do so, or no credentials are needed."""
        return self.open or bool(self._settings.tls_client_ca) or self._by_token(authorization) is not None

    def require(self, caller: Caller, role: Role) -> None:
        """Check that a caller has a role.

        Raises:
            NotAuthenticated: the caller has presented no credentials.
            RoleMissing: its role is too low.
        """
        if caller.role >= role:
            return
        if caller.name == ANYBODY:
            raise self._unknown("no token was sent")
        raise RoleMissing(
            f"{caller.name} has the role {caller.role.word}, but this needs {role.word}; use other credentials"
        )

    def _unknown(self, why: str) -> NotAuthenticated:
        if self.guarded:
            remedy = "a token of adminTokensFile", "or add the certificate's name to adminTlsSubjects"
        else:
            remedy = "the token of admin.token in the bookie's first ledger directory", "or set adminTokensFile"
        return NotAuthenticated(f"the caller is unknown: {why}; use {remedy[0]} (bkadmin --token-file), {remedy[1]}")

    def _by_token(self, authorization: str | None) -> Caller | None:
        if authorization is None or authorization[: len(BEARER)].lower() != BEARER:
            return None
        sent = _digest(authorization[len(BEARER) :].strip().encode())
        found = [known.caller for known in self._known() if hmac.compare_digest(sent, known.digest)]
        return found[0] if found else None

    def _by_subject(self, subjects: Iterable[str]) -> Caller | None:
        found = [
            Caller(f"certificate:{name}", role)
            for name in subjects
            for role, wanted in self._subjects
            if wanted in ("*", name)
        ]
        return max(found, key=lambda caller: caller.role, default=None)

    def _known(self) -> Sequence[_Token]:
        path = self._settings.tokens_file
        with self._lock:
            if self._file.changed():
                try:
                    self._tokens = _read_tokens(path)
                except ConfigError as error:
                    log.error("the changed tokens file cannot be used, the previous tokens stay in effect: %s", error)
                else:
                    log.info("the changed tokens file is in effect", extra={"file": path})
            return *self._tokens, *self._own


def audit(caller: Caller, peer: str, action: str, outcome: str, **facts: object) -> None:
    """Write one line to the audit log about a change that was made or refused. Values must not contain secrets.

    Refusals of unknown callers are logged at most a few times a second, with the number of lines left out, because
    anyone can cause them.

    Args:
        caller: who made the call.
        peer: the caller's address.
        action: the method or path.
        outcome: `done`, `failed` or `refused`, possibly with the kind of error.
        facts: further fields; empty ones are left out.
    """
    if outcome == "refused" and caller.name in STRANGERS:
        left_out = _strangers.left_out()
        if left_out is None:
            return
        facts = {**facts, "left_out": left_out or None}
    what = {name: value for name, value in facts.items() if value not in ("", None)}
    log.warning("audit", extra={"caller": caller.name, "peer": peer, "action": action, "outcome": outcome, **what})


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()


def _read_tokens(path: str) -> tuple[_Token, ...]:
    if not path:
        return ()
    try:
        text = read_secret_text(path)
    except SecretRefused as refused:
        raise ConfigError("adminTokensFile", path, refused.reason, refused.remedy) from None
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
    tokens = tuple(_token(path, number, line) for number, line in lines if line and not line.startswith("#"))
    if not tokens:
        raise ConfigError("adminTokensFile", path, "it has no token", "write a line `operate:TOKEN` into it")
    return tokens


def _token(path: str, number: int, line: str) -> _Token:
    """Parse `role:name:token`, or `role:token`, whose name is its line number."""
    role, *named, token = line.split(":", 2) if ":" in line else ("", line)
    name = named[0] if named else f"line-{number}"
    known = _role(role)
    if known is None:
        words = ", ".join(f"`{one.word}`" for one in Role)
        reason, remedy = (
            "does not begin with a role",
            f"write `operate:TOKEN` or `operate:NAME:TOKEN`; roles are {words}",
        )
    elif not NAME.fullmatch(name):
        reason, remedy = "has an invalid name", "use letters, digits and .@+-_ in names"
    elif not TOKEN_BYTES_MIN <= len(token.encode()) <= TOKEN_BYTES_MAX:
        reason, remedy = "has a token that is too short or too long", f"use {TOKEN_BYTES_MIN} bytes or more"
    else:
        return _Token(_digest(token.encode()), Caller(f"token:{name}", known))
    raise ConfigError("adminTokensFile", path, f"line {number} {reason}", remedy)


def _subjects(text: str) -> tuple[tuple[Role, str], ...]:
    rules = []
    for part in (one.strip() for one in text.split(",") if one.strip()):
        role, _, name = part.partition(":")
        known = _role(role)
        if known is None or not name:
            raise ConfigError(
                "adminTlsSubjects", text, f"{part!r} is not of the form role:name", "write `operate:ops.example`"
            )
        rules.append((known, name.strip()))
    return tuple(rules)


def _role(word: str) -> Role | None:
    return next((role for role in Role if role.word == word.strip().lower()), None)
