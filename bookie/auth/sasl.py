"""SASL DIGEST-MD5 between clients and bookies, compatible with Apache BookKeeper's `sasl` provider.

    client -> empty                      (the mechanism has no initial response)
    bookie -> challenge: realm, nonce
    client -> user, proof of the password
    bookie -> rspauth: proof that the bookie knows it too; the client is authenticated

Java's client then sends one more empty token, which the bookie answers like any AUTH of an authenticated connection.
"""

import hmac
import re
import secrets
from dataclasses import replace

from bookie.auth import digest_md5
from bookie.auth.digest_md5 import Response
from bookie.auth.jaas import read_section
from bookie.auth.provider import AuthenticationFailed, Outcome
from bookie.auth.reread import Reread
from bookie.auth.settings import AuthSettings, ClientAuthSettings
from bookie.errors import ConfigurationError

__all__ = ["client", "PLUGIN", "SaslClient", "SaslServer", "server"]

PLUGIN = "sasl"
SERVICE = "bookkeeper"
REALM = "bookkeeper"
"""Apache BookKeeper gives every host this name, so the realm and the URI are the same everywhere."""
DIGEST_URI = f"{SERVICE}/{REALM}".encode()
USER_PREFIX = "user_"


def server(settings: AuthSettings) -> "SaslServer":
    """Return the bookie's provider, which reads the JAAS file again when it changes. Raises ConfigurationError."""
    if not settings.jaas_file:
        raise ConfigurationError("saslJaasConfigFile=: SASL needs users; set it to the JAAS file that contains them")
    source = Reread(settings.jaas_file, lambda: _users(settings))
    try:
        allowed = re.compile(settings.allowed_ids)
    except re.error as error:
        raise ConfigurationError(
            f"saslJaasClientAllowedIds={settings.allowed_ids}: it is not a regular expression ({error.msg}); correct it"
        ) from None
    return SaslServer(source.now, allowed, source)


def _users(settings: AuthSettings) -> dict[str, str]:
    options = read_section(settings.jaas_file, settings.jaas_section)
    users = {name.removeprefix(USER_PREFIX): text for name, text in options.items() if name.startswith(USER_PREFIX)}
    if not users:
        where = f"{settings.jaas_file}: section {settings.jaas_section}"
        raise ConfigurationError(f'{where} has no user; add {USER_PREFIX}NAME="password"')
    return users


def client(settings: ClientAuthSettings) -> "SaslClient":
    """Return the client's provider, with user and password from the JAAS file. Raises ConfigurationError."""
    if not settings.jaas_file:
        raise ConfigurationError("jaas_file is empty: SASL needs a user; set it to the JAAS file that contains it")
    options = read_section(settings.jaas_file, settings.jaas_section, strict=False)
    if "username" not in options or "password" not in options:
        where = f"{settings.jaas_file}: section {settings.jaas_section}"
        raise ConfigurationError(f'{where} has no login; add username="..." and password="..."')
    return SaslClient(options["username"], options["password"])


class SaslServer:
    """Knows `users` (name -> password) and accepts those whose name matches `allowed`.

    With a `source`, the users are read again when the file changes: a user who was removed, or whose password
    changed, is no longer known.
    """

    plugin_name = PLUGIN
    challenges = True

    def __init__(
        self, users: dict[str, str], allowed: re.Pattern[str], source: Reread[dict[str, str]] | None = None
    ) -> None:
        self._users = users  # replaced as a whole
        self._allowed = allowed
        self._source = source
        self._own = secrets.token_bytes(32)  # makes what is kept of a password useless elsewhere
        self._nobody = secrets.token_hex(16)  # the password for unknown users, so that they take the same time

    def __repr__(self) -> str:
        return f"SaslServer({len(self._users)} users)"

    def session(self, peer: str) -> "SaslServerSession":  # noqa: ARG002 - where a user comes from does not matter
        """Return a session for a new connection."""
        return SaslServerSession(self)

    def prove(self, response: Response) -> Outcome:
        """Verify a response, and return the user with our own proof. Wrong names and passwords raise the same error."""
        user, users = response.user(), self._users
        password = users.get(user, self._nobody)
        proven = digest_md5.matches(response, password)
        if not (proven and user in users):
            raise AuthenticationFailed("the user or the password is wrong")
        if response.authzid not in (None, b"", response.username):
            raise AuthenticationFailed("the client requests to act for another user")
        if not self._allowed.fullmatch(user):
            raise AuthenticationFailed("the password is right, but saslJaasClientAllowedIds does not match the user")
        answer = b"rspauth=" + digest_md5.response_value(response, password, method=b"")
        return Outcome(answer, user, credential=self._credential(user, password))

    def refresh(self) -> bool:
        """Read the file if it has changed."""
        if self._source is None or not self._source.refresh():
            return False
        self._users = self._source.now
        return True

    def knows(self, outcome: Outcome) -> bool:
        """Compare by name and password."""
        user = outcome.principal or ""
        password = self._users.get(user)
        return password is not None and self._credential(user, password) == outcome.credential

    def _credential(self, user: str, password: str) -> bytes:
        return hmac.digest(self._own, f"{user}\0{password}".encode(), "sha256")


class SaslServerSession:
    """One login: challenge, then response. A nonce is valid for one response."""

    def __init__(self, provider: SaslServer) -> None:
        self._provider = provider
        self._nonce: bytes | None = None

    def process(self, token: bytes) -> Outcome:
        """Process the client's first token, then its response."""
        if self._nonce is None:
            if token:
                raise AuthenticationFailed("the client sent a response before there was a challenge")
            nonce = secrets.token_urlsafe(24)
            self._nonce = nonce.encode()
            return Outcome(digest_md5.challenge(REALM, nonce))
        response = digest_md5.parse_response(token)
        fits = (
            hmac.compare_digest(response.nonce, self._nonce)
            and response.nonce_count == digest_md5.FIRST_USE
            and response.qop == digest_md5.QOP
            and response.realm == REALM.encode()
            and response.digest_uri.lower() == DIGEST_URI
        )
        if not fits:
            raise AuthenticationFailed("the response is not for this challenge, service or realm")
        return self._provider.prove(response)

    def upgraded(self, certificate: bytes | None) -> Outcome:  # noqa: ARG002
        """Return no identity: encryption alone proves nothing to this provider."""
        return Outcome()


class SaslClient:
    """Authenticates as `user`."""

    plugin_name = PLUGIN

    def __init__(self, user: str, password: str) -> None:
        self._user = user
        self._password = password

    def __repr__(self) -> str:
        return "SaslClient(...)"

    def session(self, host: str) -> "SaslClientSession":  # noqa: ARG002 - every bookie has the same realm
        """Return a session for a new connection."""
        return SaslClientSession(self._user, self._password)


class SaslClientSession:
    """One login: an empty token, the response, and verification of the bookie's proof."""

    def __init__(self, user: str, password: str) -> None:
        self._user = user
        self._password = password
        self._expected: bytes | None = None
        self.done = False

    def first(self) -> bytes:
        """Return an empty token, because the mechanism has no initial response."""
        return b""

    def answer(self, token: bytes) -> bytes | None:
        """Answer the challenge, then verify the bookie's proof."""
        if self._expected is not None:
            if not hmac.compare_digest(digest_md5.rspauth(token), self._expected):
                raise AuthenticationFailed("the bookie does not know the password, so it is not trustworthy")
            self.done = True
            return None
        challenge = digest_md5.parse_challenge(token)
        try:
            username = self._user.encode("utf-8" if challenge.utf8 else "latin-1")
        except UnicodeEncodeError:
            raise AuthenticationFailed("the bookie does not accept user names outside ISO 8859-1") from None
        response = Response(
            username=username,
            realm=challenge.realm,
            nonce=challenge.nonce,
            cnonce=secrets.token_urlsafe(24).encode(),
            nonce_count=digest_md5.FIRST_USE,
            qop=digest_md5.QOP,
            digest_uri=DIGEST_URI,
            value=b"",
            authzid=None,
            utf8=challenge.utf8,
        )
        value = digest_md5.response_value(response, self._password, method=b"AUTHENTICATE")
        self._expected = digest_md5.response_value(response, self._password, method=b"")
        return digest_md5.encode_response(replace(response, value=value))
