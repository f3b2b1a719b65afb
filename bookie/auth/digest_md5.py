"""The SASL mechanism DIGEST-MD5 (RFC 2831) as Java implements it: qop `auth`, algorithm `md5-sess`, UTF-8.

Pure functions over bytes. The mechanism requires MD5, which only keeps the password off the wire: use it inside TLS
or on a trusted network.
"""

import hashlib
import hmac
import re
from dataclasses import dataclass

from bookie.auth.provider import AuthenticationFailed

__all__ = [
    "challenge",
    "Challenge",
    "encode_response",
    "matches",
    "parse_challenge",
    "parse_response",
    "quoted",
    "Response",
    "response_value",
    "rspauth",
]

MESSAGE_BYTES_MAX = 4096
DIRECTIVE = re.compile(
    rb"[ \t\r\n]*(?:([!#$%&'*+\-.^_`|~0-9A-Za-z]+)[ \t\r\n]*=[ \t\r\n]*"
    rb'(?:"((?:[^"\\]|\\.)*)"|([^\s",=]+))[ \t\r\n]*)?(?:,|\Z)',
    re.DOTALL,
)
ESCAPE = re.compile(rb"\\(.)", re.DOTALL)
FIRST_USE = b"00000001"
QOP = b"auth"
ALGORITHM = b"md5-sess"


@dataclass(frozen=True, slots=True)
class Challenge:
    """A server's challenge."""

    realm: bytes
    nonce: bytes
    utf8: bool


@dataclass(frozen=True, slots=True)
class Response:
    """A client's response, not yet verified."""

    username: bytes
    realm: bytes
    nonce: bytes
    cnonce: bytes
    nonce_count: bytes
    qop: bytes
    digest_uri: bytes
    value: bytes
    authzid: bytes | None
    utf8: bool

    def user(self) -> str:
        """Return the user's name as text. Raises AuthenticationFailed if it is not in the announced character set."""
        try:
            return self.username.decode("utf-8" if self.utf8 else "latin-1")
        except UnicodeDecodeError:
            raise AuthenticationFailed("the user name is not in the announced character set") from None


def challenge(realm: str, nonce: str) -> bytes:
    """Return the server's first message."""
    return f'realm="{realm}",nonce="{nonce}",charset=utf-8,algorithm=md5-sess,qop="auth"'.encode()


def parse_challenge(message: bytes) -> Challenge:
    """Parse a challenge. Raises AuthenticationFailed if it is malformed or demands more than `auth`."""
    found = _directives(message)
    if b"nonce" not in found or found.get(b"algorithm", [b""])[0].lower() != ALGORITHM:
        raise AuthenticationFailed("the challenge lacks a nonce or asks for an algorithm other than md5-sess")
    offered = found.get(b"qop", [QOP])[0]
    if QOP not in [part.strip() for part in offered.lower().split(b",")]:
        raise AuthenticationFailed("the bookie demands a SASL security layer; only qop=auth is supported")
    return Challenge(found.get(b"realm", [b""])[0], found[b"nonce"][0], utf8=b"charset" in found)


def parse_response(message: bytes) -> Response:
    """Parse a response. Raises AuthenticationFailed if it is malformed."""
    found = _directives(message)
    if any(len(values) > 1 for values in found.values()):
        raise AuthenticationFailed("the response has a directive twice")

    def one(name: bytes, otherwise: bytes | None = None) -> bytes:
        if name in found:
            return found[name][0]
        if otherwise is None:
            raise AuthenticationFailed(f"the response lacks the directive {name.decode()}")
        return otherwise

    return Response(
        username=one(b"username"),
        realm=one(b"realm", b""),
        nonce=one(b"nonce"),
        cnonce=one(b"cnonce"),
        nonce_count=one(b"nc"),
        qop=one(b"qop", QOP),
        digest_uri=one(b"digest-uri"),
        value=one(b"response"),
        authzid=found.get(b"authzid", [None])[0],
        utf8=b"charset" in found,
    )


def response_value(response: Response, password: str, *, method: bytes) -> bytes:
    """Return the 32 hexadecimal digits that prove the password; `method` is AUTHENTICATE for a client, else empty."""
    secret = _md5(b":".join([_plain(response.username, utf8=response.utf8), _plain(response.realm, utf8=response.utf8),
                             _encode(password)]))  # fmt: skip
    parts = [secret, response.nonce, response.cnonce]
    if response.authzid is not None:
        parts.append(response.authzid)
    return _hex(
        b":".join([
            _hex(b":".join(parts)),
            response.nonce,
            response.nonce_count,
            response.cnonce,
            response.qop,
            _hex(method + b":" + response.digest_uri),
        ])
    )  # fmt: skip


def matches(response: Response, password: str) -> bool:
    """Return whether the response proves the password, in time that does not depend on what was sent."""
    return hmac.compare_digest(response_value(response, password, method=b"AUTHENTICATE"), response.value)


def encode_response(response: Response) -> bytes:
    """Return the client's message."""
    parts = [
        b'username="%s"' % quoted(response.username),
        b'realm="%s"' % quoted(response.realm),
        b'nonce="%s"' % quoted(response.nonce),
        b'cnonce="%s"' % quoted(response.cnonce),
        b"nc=" + response.nonce_count,
        b"qop=" + response.qop,
        b'digest-uri="%s"' % quoted(response.digest_uri),
        b"response=" + response.value,
    ]
    return b",".join([b"charset=utf-8", *parts] if response.utf8 else parts)


def rspauth(message: bytes) -> bytes:
    """Return the server's proof from its last message; empty if there is none."""
    return _directives(message).get(b"rspauth", [b""])[0]


def _directives(message: bytes) -> dict[bytes, list[bytes]]:
    """Parse `name=value, name="quoted value", ...`; empty elements are allowed."""
    if len(message) > MESSAGE_BYTES_MAX:
        raise AuthenticationFailed(f"the message is longer than {MESSAGE_BYTES_MAX} bytes")
    found: dict[bytes, list[bytes]] = {}
    at = 0
    while at < len(message):
        match = DIRECTIVE.match(message, at)
        if not match:
            raise AuthenticationFailed(f"the message is malformed at byte {at}")
        if match[1]:
            value = ESCAPE.sub(rb"\1", match[2]) if match[2] is not None else match[3]
            found.setdefault(match[1].lower(), []).append(value)
        at = match.end()
    return found


def _plain(name: bytes, *, utf8: bool) -> bytes:
    """Encode a name for hashing: in ISO 8859-1 if possible, whatever its encoding on the wire."""
    if not utf8:
        return name
    try:
        return _encode(name.decode("utf-8"))
    except UnicodeDecodeError:
        raise AuthenticationFailed("a name is not in the announced character set") from None


def _encode(text: str) -> bytes:
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode("utf-8")


def quoted(text: bytes) -> bytes:
    """Escape a text for use inside a quoted string."""
    return text.replace(b"\\", b"\\\\").replace(b'"', b'\\"')


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


def _hex(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).hexdigest().encode()
