"""Tests of S4: no log, even at its finest level, no metric, no configuration and no error shows a key or a token."""

import logging
from pathlib import Path

import pytest

from bookie.auth.token import TokenClient
from bookie.client import ChannelV3, Digest, Security
from bookie.errors import UnauthorizedAccess
from bookie.metrics.text import write
from tests.fixtures.whole_bookie import whole_bookie

TOKEN, WRONG, PASSWORD = (f"marker-of-the-{name}" for name in ("token", "wrong-token", "ledger"))


def test_nothing_secret_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """One client logs in and writes, with the ledger's key and with a wrong one; another fails to log in."""
    caplog.set_level(logging.DEBUG)
    (tmp_path / "tokens").write_text(TOKEN + "\n")
    auth = {"bookieAuthProviderFactoryClass": "token", "authTokenFile": str(tmp_path / "tokens")}
    digest, other = (Digest.of(password=password.encode()) for password in (PASSWORD, WRONG))
    with whole_bookie(tmp_path, **auth) as running:
        with ChannelV3.connect(*running.address, security=Security(auth=TokenClient(TOKEN.encode()))) as channel:
            channel.add(7, 0, b"x", digest=digest, lac=-1, length=1)
            with pytest.raises(UnauthorizedAccess) as refused:
                channel.add(7, 1, b"x", digest=other, lac=0, length=2)
        with pytest.raises(UnauthorizedAccess) as turned_away:
            ChannelV3.connect(*running.address, security=Security(auth=TokenClient(WRONG.encode())))
        reported = write(running.bookie.metrics()).decode() + repr(running.bookie.configuration())
    reported += "".join(f"{record.getMessage()} {record.__dict__}" for record in caplog.records)
    reported += f"{refused.value} {turned_away.value}"
    for line in ("messages_total 2", "accepted_total 1", "rejected_total 1", "sessions 0"):
        assert f"pybookie_authentication_{line}\n" in reported
    assert "marker" not in reported
    assert not any(
        secret.hex() in reported or repr(secret) in reported for secret in (digest.master_key, other.master_key)
    )
