"""Test digests of entries: the worked values, and the compiled ones against zlib, OpenSSL and the bit-by-bit CRC."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie._fast.wire.digest import Digester
from tests.golden.wire_v2 import DIGESTS
from tests.reference import record as model

KINDS = st.sampled_from([model.CRC32, model.HMAC, model.CRC32C, model.DUMMY])


def digester(kind: int, password: bytes = b"pw") -> Digester:
    """Return a compiled digester with the key that Apache BookKeeper derives from the password."""
    return Digester(kind, hashlib.sha1(b"mac" + password).digest())


@pytest.mark.parametrize("kind", DIGESTS)
def test_worked_digests(kind: int) -> None:
    """Digests of an entry and a LAC packet are those that the JDK computed."""
    entry, packet = (bytes.fromhex(text) for text in DIGESTS[kind])
    assert digester(kind).sum(entry[:32], b"hello") == entry[32:-5]
    assert digester(kind).sum(packet[:16], b"") == packet[16:]
    assert digester(kind).size == model.SIZES[kind]


@given(KINDS, st.binary(max_size=40), st.binary(max_size=300))
def test_digest_like_the_model(kind: int, head: bytes, data: bytes) -> None:
    """Header and payload are digested as if they were contiguous, with every split of CRC blocks."""
    assert digester(kind).sum(head, data) == model.digest(kind, b"pw", head + data)


@given(st.binary(max_size=64), st.integers(0, 5000))
def test_hmac_of_every_length(password: bytes, size: int) -> None:
    """Our SHA-1 agrees with OpenSSL's on any length and key."""
    data = bytes(i * 31 & 0xFF for i in range(size))
    assert digester(model.HMAC, password).sum(b"", data) == model.digest(model.HMAC, password, data)


@pytest.mark.parametrize(
    ("kind", "key", "text"), [(5, bytes(20), "digest kind 5"), (2, bytes(19), "mac_key has 19 bytes")]
)
def test_bad_digester(kind: int, key: bytes, text: str) -> None:
    """An unknown kind and a short key are refused, and the error names them."""
    with pytest.raises(ValueError, match=text):
        Digester(kind, key)
