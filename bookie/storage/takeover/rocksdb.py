"""The RocksDB `ledgers` of Java's DbLedgerStorage: read, never written (docs/formats/java-disks.md).

Main thread, at start. `rocksdict` brings RocksDB; it is asked for by the extra `java-disks` and only here. Even a
read-only opening would leave files of its own beside the data, so RocksDB is given a directory of links instead.
"""

import fcntl
import logging
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from google.protobuf.message import DecodeError

from bookie._fast.index_view import Ledger
from bookie.errors import StartRefused
from bookie.pb.java_index_pb2 import LedgerData

__all__ = ["held", "is_rocksdb", "ledgers_of", "read_pairs"]

log = logging.getLogger(__name__)

LEDGER_KEY = struct.Struct(">q")
REBUILT_KEY_BYTES = 16
"""Upstream's rebuild command writes the ledger id and eight zero bytes."""
STORAGE_FLAGS_KEY = -0xEEFD
NEEDS_INTEGRITY_CHECK = 1
LAC_BYTES_MIN = 16
NOT_DATA = frozenset({"LOCK", "LOG", "rocksdict-config.json"})
"""No data of RocksDB's, and written to by whoever opens it."""


def is_rocksdb(path: Path) -> bool:
    """Whether a RocksDB lies in the directory `path`."""
    return (path / "CURRENT").is_file()


@contextmanager
def held(paths: list[Path]) -> Iterator[None]:
    """Hold RocksDB's own locks on these databases, as a Java bookie would. StartRefused when one is taken."""
    files = []
    try:
        for path in paths:
            lock = path / "LOCK"
            if not lock.exists():
                continue
            files.append(lock.open("r+b"))
            try:
                fcntl.lockf(files[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise StartRefused(f"{lock} is held by another process, a Java bookie most likely: stop it") from None
        yield
    finally:
        for file in files:
            file.close()


def read_pairs(path: Path) -> list[tuple[bytes, bytes]]:
    """Every key and value, keys ascending, those that are only in the write-ahead log included.

    Raises ImportError without `rocksdict`, StartRefused when RocksDB cannot read the files.
    """
    from rocksdict import AccessType, Options, Rdict  # noqa: PLC0415  (an optional package)

    with tempfile.TemporaryDirectory(prefix="bookie-java-disks-") as scratch:
        for file in path.iterdir():
            if file.name not in NOT_DATA and not file.name.startswith("LOG.old"):
                (Path(scratch) / file.name).symlink_to(file.absolute())
        options = Options(raw_mode=True)
        options.create_if_missing(False)
        options.set_db_log_dir(scratch)
        try:
            database = Rdict(scratch, options=options, access_type=AccessType.read_only())
            try:
                return [(cast("bytes", key), cast("bytes", value)) for key, value in database.items()]
            finally:
                database.close()
        except Exception as error:  # noqa: BLE001  (the binding raises bare Exception)
            said = str(error).replace(scratch, str(path))
            raise StartRefused(
                f"{path} cannot be read as RocksDB ({said}): restore it; or move it away to go on with every ledger "
                "fenced, which loses explicit LACs and makes the writers of open ledgers begin new ones"
            ) from None


def ledgers_of(pairs: list[tuple[bytes, bytes]], path: Path) -> dict[int, Ledger]:
    """The ledgers among `pairs`; `path` is for messages. A record that cannot be read makes its ledger fenced."""
    found: dict[int, Ledger] = {}
    rebuilt: dict[int, Ledger] = {}
    for key, value in pairs:
        if len(key) not in {LEDGER_KEY.size, REBUILT_KEY_BYTES}:
            log.warning("key of unknown form passed over database=%s key=%s", path, key.hex())
            continue
        ledger = LEDGER_KEY.unpack_from(key)[0]
        if ledger < 0:
            _look_at_flags(ledger, value, path)
            continue
        # what was written after a rebuild has the short key again, and is the newer of two
        (found if len(key) == LEDGER_KEY.size else rebuilt)[ledger] = _ledger(ledger, value, path)
    return rebuilt | found


def _ledger(ledger: int, value: bytes, path: Path) -> Ledger:
    try:
        data = LedgerData.FromString(value)
    except DecodeError as error:
        log.warning("damaged record, its ledger is fenced database=%s ledger=%d: %s", path, ledger, error)
        return Ledger(ledger, b"", True, False, b"")
    lac = data.explicitLac
    if lac and len(lac) < LAC_BYTES_MIN:
        log.warning("explicit LAC of %d bytes passed over database=%s ledger=%d", len(lac), path, ledger)
        lac = b""
    return Ledger(ledger, data.masterKey, data.fenced, data.limbo, lac)


def _look_at_flags(key: int, value: bytes, path: Path) -> None:
    if key == STORAGE_FLAGS_KEY and len(value) == LEDGER_KEY.size:
        if LEDGER_KEY.unpack(value)[0] & NEEDS_INTEGRITY_CHECK:
            log.warning("the Java bookie had not finished its integrity check: run ours database=%s", path)
        return
    log.info("special key passed over database=%s key=%d", path, key)
