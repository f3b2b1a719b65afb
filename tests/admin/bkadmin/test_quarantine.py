"""`bkadmin quarantine` on a running bookie: lists ledgers with reasons, and releases one."""

import logging
from pathlib import Path

import pytest

from bookie._fast.store.quarantine import REASONS
from bookie.client import Channel
from bookie.client.entries.digest import Digest, DigestType
from tests.admin.bkadmin.conftest import BkAdmin
from tests.fixtures.whole_bookie import whole_bookie


def test_list_and_lift(bkadmin: BkAdmin, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The list has directory and reason; the release is audited, and a second one finds nothing to release."""
    with whole_bookie(tmp_path, adminPort="0") as running, Channel.connect(*running.address) as channel:
        port = ("--admin", running.uri.removeprefix("grpc://"), "-o", "json")
        for ledger in (6, 7):
            channel.add(ledger, 0, b"payload", digest=Digest.of(DigestType.DUMMY, b""), lac=-1, length=7)
        assert bkadmin("quarantine", *port).json == {"ledgers": [], "count": 0}
        assert running.bookie.stored.quarantine(7, REASONS[7])
        row = {"ledger": 7, "directory": 1, "reasons": REASONS[7]}
        assert bkadmin("quarantine", "list", *port).json == {"ledgers": [row], "count": 1}
        with caplog.at_level(logging.INFO):
            assert bkadmin("quarantine", "lift", 7, *port).json == {"ledgers": [], "count": 0}
        assert any("LiftQuarantine" in str(record.__dict__) for record in caplog.records)
        again = bkadmin("quarantine", "lift", 7, *port)
        assert (again.code, again.err.count("\n")) == (1, 1)
        assert "ledger 7 is not in quarantine on this bookie" in again.err
        assert bkadmin("quarantine", "lift", *port).code == 2
