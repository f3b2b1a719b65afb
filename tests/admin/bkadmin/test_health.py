"""`bkadmin health` on a cluster that is well, and with each of the troubles that it names."""

from collections.abc import Callable

import pytest

from bookie import __version__
from bookie.metadata import open_driver
from tests.admin.bkadmin.conftest import BkAdmin
from tests.fixtures.bookies import BookieProcess
from tests.fixtures.frozen import freeze, thaw

pytestmark = pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives")

HEALTH = ("health", "--full", 100)
"""How full the disk of the machine is does not matter."""


@pytest.mark.thorough
def test_what_needs_an_operator(
    bookies: Callable[..., list[BookieProcess]], bkadmin: BkAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 0 and no problem at first; then a line for each bookie that is down, hangs or is read-only, and for
    replication that is off and behind.
    """
    keeper, hung, gone = bookies(3, autoRecoveryDaemonEnabled="true")
    uri = f"grpc://{keeper.admin}"
    monkeypatch.setenv("BOOKIE_METADATA_URI", uri)
    well = bkadmin(*HEALTH, "-o", "json")
    assert (well.code, well.json["problems"], well.json["underreplicated_ledgers"]) == (0, [], 0)
    rows = {row["bookie"]: (row["state"], row["version"]) for row in well.json["bookies"]}
    assert rows == {one.id: ("writable", __version__) for one in (keeper, hung, gone)}
    assert all(0 < row["free"] <= row["total"] for row in well.json["bookies"])
    assert "no problem was found" in bkadmin(*HEALTH).out
    driver = open_driver(uri)
    driver.start()
    driver.registrations.register("odd:3181", b"\xff no registration", read_only=False)
    odd = bkadmin(*HEALTH, "-o", "json")
    driver.stop()
    assert (odd.code, len(odd.json["bookies"])) == (3, 4)
    assert "odd:3181 is registered and does not answer" in "\n".join(odd.json["problems"])
    filling = bkadmin("health", "--full", 1, "-o", "json")
    assert (filling.code, len(filling.json["problems"])) == (3, 3)

    assert gone.stop() == 0
    assert bkadmin("readonly", "on", "--admin", keeper.admin).code == 0
    freeze(hung.pid)
    driver = open_driver(uri)
    driver.start()
    try:
        driver.replication.enable(enabled=False)
        driver.replication.mark(7, [gone.id], 1)
        ill = bkadmin(*HEALTH, "--timeout", 0.5, "-o", "json")
    finally:
        thaw(hung.pid)
        driver.stop()
    assert ill.code == 3
    text = "\n".join(ill.json["problems"])
    assert f"{gone.id} is down" in text
    assert f"{hung.id} is registered and does not answer" in text
    assert f"{keeper.id} is read-only" in text
    assert "ledgers that lack replicas: 1;" in text
    assert "re-replication is disabled" in text
    assert "no bookie is writable" not in text
