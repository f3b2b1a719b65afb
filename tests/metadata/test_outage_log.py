"""What the log says while no ZooKeeper answers."""

import logging

import pytest

from bookie.errors import MetadataStoreError
from bookie.metadata.zookeeper.session import ZooKeeperSession, kazoo_log
from tests.fixtures.ports import free_port


def test_attempts_to_connect_do_not_fill_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client library reports each attempt; of each kind of these lines one a minute is logged."""
    (throttle,) = kazoo_log.filters
    monkeypatch.setattr(throttle, "_kinds", {})  # other tests may have had an outage a moment ago
    caplog.set_level(logging.INFO)
    for _ in range(2):
        session = ZooKeeperSession((f"127.0.0.1:{free_port()}",), timeout_s=1.0, secure=False)
        with pytest.raises(MetadataStoreError, match="did not answer within 1 s"):
            session.start()
    kinds = [record.msg for record in caplog.records if record.name.endswith(".kazoo")]
    assert "Connection dropped: %s" in kinds
    assert len(kinds) == len(set(kinds))
