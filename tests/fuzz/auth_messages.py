"""Fuzz targets for what arrives before anybody is authenticated: AUTH in either protocol, and SASL inside it.

The only allowed outcomes are an answer and the one error, and nobody may be let in. To run one target alone:

    python -m tests.fuzz.auth_messages v3 [libFuzzer options] [corpus directory]
"""

import contextlib
import importlib
import logging
import re
import sys
from collections.abc import Callable

from google.protobuf.message import DecodeError

from bookie._fast.server import policy
from bookie.auth import digest_md5, sasl
from bookie.auth.provider import AuthenticationFailed
from bookie.auth.sasl import SaslServer
from bookie.pb import wire_pb2 as wire
from bookie.server.requests import authentication
from bookie.server.requests.authentication import Authentication
from tests.server.handed import Handed

PASSWORD = "nobody sends this password 5"
PROVIDER = SaslServer({"bookkeeper": PASSWORD}, re.compile(".*"))
RESPONSE = (
    b'charset=utf-8,username="bookkeeper",realm="bookkeeper",nonce="n",nc=00000001,cnonce="c",'
    b'digest-uri="bookkeeper/bookkeeper",response=d388dad90d4bbd760a152321f2143af7,qop=auth,authzid="x"'
)


def responses(data: bytes) -> None:
    """A response is either refused, or written and parsed again to the same."""
    with contextlib.suppress(AuthenticationFailed):
        found = digest_md5.parse_response(data)
        assert not digest_md5.matches(found, PASSWORD)
        again = digest_md5.parse_response(
            b'username="u",cnonce="c",nc=1,digest-uri="d",response=0,nonce="%s"' % digest_md5.quoted(found.nonce)
        )
        assert again.nonce == found.nonce


def challenges(data: bytes) -> None:
    """Parse what a hostile bookie may send to a client."""
    client = sasl.SaslClient("bookkeeper", PASSWORD).session("")
    with contextlib.suppress(AuthenticationFailed):
        answer = client.answer(data)
        assert answer is not None
        assert PASSWORD.encode() not in answer
        client.answer(data)
    assert not client.done


def conversations(data: bytes) -> None:
    """Hand one session several messages, each with its length in one byte before it."""
    session = PROVIDER.session("")
    at = 0
    with contextlib.suppress(AuthenticationFailed):
        while at < len(data):
            size = data[at]
            outcome = session.process(data[at + 1 : at + 1 + size])
            assert outcome.principal is None
            at += 1 + size


def serve(task: Handed) -> None:
    """Check that the handler answers once, lets nobody in, and keeps a session only if the conversation goes on."""
    handler = Authentication(PROVIDER)
    handler.serve(task)  # type: ignore[arg-type]
    ((_, action),) = task.answers
    assert action != policy.AUTHENTICATED
    assert handler.sessions() == 0 or action == policy.NOTHING


def v2(data: bytes) -> None:
    """Serve the body of a V2 frame behind a correct header."""
    serve(Handed(b"\2\3\0\0" + data, 2))


def v3(data: bytes) -> None:
    """Serve the body of a V3 frame if the compiled module accepts it, which means that it parses and has its part."""
    try:
        request = wire.Request.FromString(data)
    except DecodeError:
        return
    if request.IsInitialized() and request.HasField("authRequest"):
        serve(Handed(data))


def message(plugin: str, payload: bytes) -> wire.AuthMessage:
    """Serve the part that both protocols carry."""
    return wire.AuthMessage(authPluginName=plugin, payload=payload)


def v3_seeds() -> list[bytes]:
    """Return first messages and later ones, for this plugin and another."""
    header = wire.BKPacketHeader(version=wire.VERSION_THREE, operation=wire.AUTH, txnId=8)
    said = [("sasl", b""), ("sasl", RESPONSE), ("token", b"x")]
    return [wire.Request(header=header, authRequest=message(*one)).SerializeToString() for one in said]


TARGETS: dict[str, tuple[Callable[[bytes], None], Callable[[], list[bytes]]]] = {
    "challenges": (
        challenges,
        lambda: [digest_md5.challenge("bookkeeper", "n"), b'nonce=n,algorithm=md5-sess,qop="x"'],
    ),
    "conversations": (conversations, lambda: [b"\0" + bytes([len(RESPONSE)]) + RESPONSE, b"\0\0\0"]),
    "responses": (responses, lambda: [RESPONSE, b'a="\\"",,b=c']),
    "v2": (v2, lambda: [message("sasl", b"").SerializeToString(), message("sasl", RESPONSE).SerializeToString()]),
    "v3": (v3, v3_seeds),
}


def main() -> None:
    """Fuzz one target, from its seeds, until stopped."""
    import atheris

    logging.getLogger(authentication.__name__).disabled = True  # the logger of this process, which does nothing else
    target, seeds = TARGETS[sys.argv.pop(1)]
    for seed in seeds():
        target(seed)
    with atheris.instrument_imports():
        importlib.reload(digest_md5)
        importlib.reload(authentication)
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
