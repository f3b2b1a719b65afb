"""Tests the mechanism against the worked example of RFC 2831, and against whatever may arrive instead of a message."""

import contextlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie.auth import digest_md5
from bookie.auth.provider import AuthenticationFailed

# RFC 2831, section 4.
EXAMPLE = (
    b'charset=utf-8,username="chris",realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",nc=00000001,'
    b'cnonce="OA6MHXh6VqTrRk",digest-uri="imap/elwood.innosoft.com",response=d388dad90d4bbd760a152321f2143af7,qop=auth'
)
PASSWORD = "secret"
PROOF = b"ea40f60335c427b5527b84dbabcdfffd"


def test_the_worked_example_of_the_rfc() -> None:
    """The response and the server's proof are those of the RFC."""
    response = digest_md5.parse_response(EXAMPLE)
    assert response.user() == "chris"
    assert digest_md5.matches(response, PASSWORD)
    assert not digest_md5.matches(response, PASSWORD + "x")
    assert digest_md5.response_value(response, PASSWORD, method=b"") == PROOF
    assert digest_md5.rspauth(b"rspauth=" + PROOF) == PROOF


def test_names_beyond_latin_are_hashed_as_they_are_sent() -> None:
    """UTF-8 names that ISO 8859-1 can express are hashed in that encoding, and others as UTF-8."""
    response = digest_md5.parse_response(EXAMPLE)
    accented = replace(response, username="ä".encode())
    assert digest_md5.response_value(accented, "p", method=b"") == digest_md5.response_value(
        replace(accented, username=b"\xe4", utf8=False), "p", method=b""
    )
    assert digest_md5.response_value(replace(response, username="字".encode()), "p", method=b"")


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"username",
        b'username="a',
        b'username="a" nonce="b"',
        EXAMPLE + b',nonce="twice"',
        EXAMPLE.replace(b"nc=00000001,", b""),
        b"," * 5000,
    ],
)
def test_malformed_responses_are_refused(message: bytes) -> None:
    """They are refused with AuthenticationFailed, and the error repeats nothing of what was sent."""
    with pytest.raises(AuthenticationFailed) as refused:
        digest_md5.parse_response(message)
    assert "chris" not in str(refused.value)


@given(st.one_of(st.binary(max_size=300), st.text('username="\\,=abc \t', max_size=60).map(str.encode)))
def test_any_bytes_are_parsed_or_refused(message: bytes) -> None:
    """Whatever the bytes are, no other error is raised, in either direction."""
    for parse in (digest_md5.parse_response, digest_md5.parse_challenge, digest_md5.rspauth):
        with contextlib.suppress(AuthenticationFailed):
            parse(message)


@given(st.text(min_size=1, max_size=20), st.binary(min_size=1, max_size=20))
def test_what_is_written_is_read_back(user: str, nonce: bytes) -> None:
    """The quoting preserves quotes, backslashes and commas."""
    try:
        username = user.encode()
    except UnicodeEncodeError:
        return
    sent = replace(digest_md5.parse_response(EXAMPLE), username=username, nonce=nonce)
    assert digest_md5.parse_response(digest_md5.encode_response(sent)) == sent


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (b'realm="r",algorithm=md5-sess', "lacks a nonce"),
        (b'nonce="n",algorithm=md5', "md5-sess"),
        (b'nonce="n",algorithm=md5-sess,qop="auth-conf"', "only qop=auth"),
    ],
)
def test_challenges_that_ask_for_more_are_refused(message: bytes, why: str) -> None:
    """The client refuses them and says what it cannot do."""
    with pytest.raises(AuthenticationFailed, match=why):
        digest_md5.parse_challenge(message)
