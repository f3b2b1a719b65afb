"""Seal and open entries with each digest, compared with the worked values."""

import pytest

from bookie.client import Digest, DigestType
from bookie.errors import DigestMismatch
from tests.golden.wire_v2 import DIGESTS, K0, KP


@pytest.mark.parametrize("kind", DigestType)
def test_worked_entries(kind: DigestType) -> None:
    """The entry "hello" and the LAC packet are reproduced byte for byte."""
    entry, packet = (bytes.fromhex(text) for text in DIGESTS[kind])
    digest = Digest.of(kind, b"pw")
    assert digest.seal(7, 0, b"hello", lac=-1, length=5) == entry
    assert digest.seal_lac(7, 1) == packet
    assert bytes(digest.open(entry, 7, 0).payload) == b"hello"


def test_master_keys() -> None:
    """The key depends on the password alone, and is not in the printed form of a digest."""
    assert Digest.of(DigestType.HMAC).master_key == Digest.of(DigestType.DUMMY).master_key == K0
    digest = Digest.of(DigestType.CRC32, b"pw")
    assert digest.master_key == KP
    assert "key" not in repr(digest)


@pytest.mark.parametrize("kind", DigestType)
def test_opens_only_as_itself(kind: DigestType) -> None:
    """An entry opens only with its own ledger and id, and a short one never."""
    digest = Digest.of(kind, b"pw")
    stored = digest.seal(7, 3, b"abc", lac=2, length=20)
    opened = digest.open(stored, 7)
    assert (opened.ledger, opened.entry, opened.lac, opened.length, bytes(opened.payload)) == (7, 3, 2, 20, b"abc")
    for ledger, entry in ((8, 3), (7, 4)):
        with pytest.raises(DigestMismatch, match="got ledger 7, entry 3"):
            digest.open(stored, ledger, entry)
    with pytest.raises(DigestMismatch, match="got 31 bytes"):
        digest.open(stored[:31], 7, 3)
