"""Spark reads what Apache BookKeeper's client wrote to its bookie, through ZooKeeper."""

from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.java_peer import JavaPeer
from tests.fixtures.java_process import SMALL, JavaBookie
from tests.fixtures.ports import free_port
from tests.fixtures.zookeeper import ZooKeeperServer
from tests.interop.conftest import Client, new_cluster
from tests.interop.driver import Driver
from tests.interop.payload import payload

pytestmark = pytest.mark.interop

COUNT, SIZE = 300, 200


def read_ids(spark: Any, uri: str, ledger: int, **options: str) -> list[tuple[int, bytes]]:
    """Read entry ids and payloads."""
    given = {"metadataServiceUri": uri, "ledgers": str(ledger), "password": "secret", **options}
    frame = spark.read.format("bookkeeper").options(**given).load()
    return [(row.entry_id, bytes(row.value)) for row in frame.select("entry_id", "value").collect()]


def test_ledgers_of_the_java_client(
    spark: Any, java_peer: JavaPeer, zookeeper: ZooKeeperServer, tmp_path: Path
) -> None:
    """BR6, BR12. Over V3, where a Java bookie has no batch reads, and over V2, with them; open and closed ledgers."""
    uri = new_cluster(java_peer, zookeeper.address, tmp_path / "init")
    bookie = JavaBookie(java_peer, tmp_path / "java", free_port(), uri, SMALL)
    driver = Driver(java_peer, tmp_path / "driver.log", heap_mb=256, direct_mb=256)
    bookie.start()
    driver.start()
    try:
        client = Client(driver, uri)
        writer = client.call("create", e=1, w=1, a=1, password="secret")
        client.call("add", handle=writer["handle"], n=COUNT, size=SIZE, window=1)
        ledger = writer["ledger"]
        expected = [(entry, payload(ledger, entry, SIZE)) for entry in range(COUNT)]
        assert read_ids(spark, uri, ledger) == expected[:-1], "its LAC lags by one"
        client.call("close", handle=writer["handle"])
        assert read_ids(spark, uri, ledger) == expected
        assert read_ids(spark, uri, ledger, **{"bookkeeper.useV2WireProtocol": "true"}) == expected
    finally:
        driver.stop()
        bookie.kill()
