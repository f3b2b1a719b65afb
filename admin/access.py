"""Who may do what at the admin ports, over gRPC and HTTP alike; and the audit of what was done.

    access = Access(control.access)                       # reads the files; ConfigError names what is wrong
    caller = access.caller("Bearer 8d1f…", ["ops.example"])     # who it is; NotAuthenticated
    access.require(caller, Role.OPERATE)                  # RoleMissing

Any thread. A caller shows a bearer token, or a certificate that TLS has verified, or both; the higher role counts. The
token that the bookie has made for its own user (`bookie.admin_port.own_token`) counts beside those of the
configuration. Where that has none, which it permits on loopback only, who shows nothing may see what is measured. With
`adminInsecureAllowed` and no tokens whoever reaches the port may do everything.
Tokens are compared in constant time, all of them each time; none is ever logged or part of an error.
"""

import hashlib
import hmac
import logging
import re
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from admin.auditing import LineLimit
from admin.roles import Role
from bookie.changed_files import ChangedFiles
from bookie.errors import SecurityError
from bookie.secret_files import SecretRefused, read_secret_text
from bookie.server.configuration.errors import ConfigError
from bookie.server.configuration.settings import AccessSettings

__all__ = ["Access", "audit", "Caller", "NotAuthenticated", "Role", "RoleMissing"]

TOKEN_BYTES_MIN, TOKEN_BYTES_MAX = 16, 4096
BEARER = "bearer "
NAME = re.compile(r"[\w.@+-]{1,64}")
ANYBODY = "local"
"""Who shows nothing, where the configuration asks for nothing."""

STRANGERS = (ANYBODY, "unknown")

log = logging.getLogger(__name__)
_strangers = LineLimit()


class NotAuthenticated(SecurityError):
    """The caller has shown nothing, or nothing that is known here (HTTP 401, gRPC UNAUTHENTICATED)."""


class RoleMissing(SecurityError):
    """The caller is known, but may not do this (HTTP 403, gRPC PERMISSION_DENIED)."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody, as the audit names them."""

    name: str
    role: Role


@dataclass(frozen=True, slots=True, repr=False)
class _Token:
    digest: bytes
    caller: Caller


class Access:
    """The rules of one bookie. The constructor reads the files; a tokens file that changes is read again.

    `own_token`: the file with the bookie's own; it need not be there.
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
        """Whether the configuration says who may do what."""
        return self._settings.guarded

    @property
    def open(self) -> bool:
        """Whether whoever reaches the port may do everything."""
        return self._settings.insecure_allowed and not self.guarded

    def caller(self, authorization: str | None = None, subjects: Iterable[str] = ()) -> Caller:
        """Who shows this header, and the names of a verified certificate. NotAuthenticated."""
        if self.open:
            return Caller(ANYBODY, Role.ADMIN)
        found = [caller for caller in (self._by_token(authorization), self._by_subject(subjects)) if caller]
        if found:
            return max(found, key=lambda caller: caller.role)
        if not (self.guarded or authorization):
            return Caller(ANYBODY, Role.METRICS)
        raise self._unknown("that token is not known here" if authorization else "no token was sent")

    def is_known(self, authorization: str | None) -> bool:
        """Whether somebody is known by this header, or may be by a certificate, or nobody needs to be."""
        return self.open or bool(self._settings.tls_client_ca) or self._by_token(authorization) is not None

    def require(self, caller: Caller, role: Role) -> None:
        """RoleMissing unless the caller has it; NotAuthenticated where nothing was shown."""
        if caller.role >= role:
            return
        if caller.name == ANYBODY:
            raise self._unknown("no token was sent")
        raise RoleMissing(
            f"{caller.name} has the role {caller.role.word}, this needs {role.word}; show another token or name"
        )

    def _unknown(self, why: str) -> NotAuthenticated:
        if self.guarded:
            remedy = "one of adminTokensFile, or have the certificate's name put into adminTlsSubjects"
        else:
            remedy = "that of admin.token in the bookie's first ledger directory, or set adminTokensFile to have others"
        return NotAuthenticated(f"the caller is not known: {why}; send `authorization: Bearer TOKEN` with {remedy}")

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
                    log.error("the tokens file has changed but cannot be used, the former tokens stay: %s", error)
                else:
                    log.info("the tokens file has changed and is used", extra={"file": path})
            return *self._tokens, *self._own


def audit(caller: Caller, peer: str, action: str, outcome: str, **facts: object) -> None:
    """One line for a change, made or refused: who, from where, what, and what came of it. Values are never secrets.

    What strangers are refused is told a few times a second, with how many lines were left out, for they ask as often as
    they like.
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
        raise ConfigError("adminTokensFile", path, "there is no token in it", "write a line `operate:TOKEN` into it")
    return tokens


def _token(path: str, number: int, line: str) -> _Token:
    """`role:token`, named by its line, or `role:name:token`."""
    role, *named, token = line.split(":", 2) if ":" in line else ("", line)
    name = named[0] if named else f"line-{number}"
    known = _role(role)
    if known is None:
        words = ", ".join(f"`{one.word}`" for one in Role)
        reason, remedy = "begins with no role", f"write `operate:TOKEN` or `operate:NAME:TOKEN`; roles are {words}"
    elif not NAME.fullmatch(name):
        reason, remedy = "has a name that is not usable", "use letters, digits and .@+-_ in names"
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
            raise ConfigError("adminTlsSubjects", text, f"{part!r} is not role:name", "write `operate:ops.example`")
        rules.append((known, name.strip()))
    return tuple(rules)


def _role(word: str) -> Role | None:
    return next((role for role in Role if role.word == word.strip().lower()), None)
