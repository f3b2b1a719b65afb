"""The way back to Java: writes the RocksDB database `ledgers` of DbLedgerStorage from the ledgers in our index.

    python -m bookie.storage.takeover.give_back DIRECTORY...

Run it for each ledger directory (or index directory, if there are any) of a bookie that was shut down cleanly; it
needs the extra `java-disks`. Apache BookKeeper's `rebuild-db-ledger-locations-index` then finds the entries. Its
`rebuild-db-ledgers-index` would work without this program, but fences every ledger.
"""

import logging
import subprocess
import sys
from pathlib import Path

from bookie._fast.index.view import Index, Ledger
from bookie.durable import PRIVATE_DIRECTORY, sync_directory
from bookie.errors import BookKeeperError, ToolRefused
from bookie.pb.java_index_pb2 import LedgerData
from bookie.storage.layout import current
from bookie.storage.takeover.disks import INDEX_NAME
from bookie.storage.takeover.rocksdb import LEDGER_KEY, held, is_rocksdb
from bookie.storage.takeover.rocksdb_pairs import pack
from bookie.storage.tools.locking import locked
from bookie.storage.tools.progress import Step, no_step

__all__ = ["give_back"]

log = logging.getLogger(__name__)


def give_back(directory: Path, *, step: Step = no_step) -> int:
    """Write `current/ledgers` from our index, keep the previous one as `ledgers.before`, and return the number of
    ledgers.

    Steps: written, former kept, named; after an interruption at any of them it begins again. Raises ToolRefused if
    the directory is in use or has no index of ours, or if `rocksdict` is not installed.
    """
    index = current(directory) / INDEX_NAME
    target = current(directory) / "ledgers"
    if not (index / "data.mdb").exists():
        raise ToolRefused(f"{index} is missing: this directory has no index of a bookie of this kind")
    if (current(directory) / "DIRTY").exists():
        raise ToolRefused(f"{directory}: the bookie was not shut down cleanly; start and stop it once, then try again")
    with locked([directory]), held([target] if is_rocksdb(target) else []):
        ledgers = _ledgers(index)
        building = target.with_name("ledgers.new")
        _write(building, ledgers)
        step("written")
        before = _free_name(target)
        if target.exists():
            target.rename(before)
        else:
            # Upstream's command expects a database that it can move away.
            (current(directory) / "locations").mkdir(PRIVATE_DIRECTORY, exist_ok=True)
        step("former kept")
        building.rename(target)
        step("named")
        sync_directory(target.parent)
    log.info("the ledgers were written for Java", extra={"database": target, "ledgers": len(ledgers)})
    return len(ledgers)


def _ledgers(index: Path) -> list[Ledger]:
    opened = Index.open(index)
    try:
        return opened.reader().ledgers()
    finally:
        opened.close()


def _write(path: Path, ledgers: list[Ledger]) -> None:
    command = [sys.executable, "-m", "bookie.storage.takeover.rocksdb_pairs", "--write", str(path)]
    pairs = b"".join(pack(LEDGER_KEY.pack(ledger.ledger), _data(ledger)) for ledger in ledgers)
    done = subprocess.run(command, input=pairs, capture_output=True, check=False)  # noqa: S603  (our own module)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise ToolRefused(f"{path} cannot be written ({said}); install bookie[java-disks], free space and try again")


def _data(ledger: Ledger) -> bytes:
    data = LedgerData(exists=True, fenced=ledger.fenced, masterKey=ledger.key)
    if ledger.lac:
        data.explicitLac = ledger.lac
    if ledger.limbo:
        data.limbo = True
    return data.SerializeToString()


def _free_name(target: Path) -> Path:
    """Return the name for the previous database: `ledgers.before`, or the next free numbered name."""
    name = target.with_name("ledgers.before")
    number = 1
    while name.exists():
        number += 1
        name = target.with_name(f"ledgers.before-{number}")
    return name


def main() -> None:
    """Run the command."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        for directory in sys.argv[1:]:
            count = give_back(Path(directory))
            log.info("%s: %d ledgers", directory, count)
    except BookKeeperError as error:
        log.error("%s", error)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
