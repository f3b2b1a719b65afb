"""Disks as a Java bookie leaves them, made by hand: entry logs, a RocksDB or index files, marks."""

import json
import struct
import subprocess
import sys
from pathlib import Path

from bookie.pb.java_index_pb2 import LedgerData
from tests.reference import entry_log as log_model

KEY = b"k" * 20


def entry(ledger: int, entry_id: int) -> bytes:
    """An entry that says which it is."""
    return log_model.entry(ledger, entry_id, struct.pack(">qq", entry_id - 1, 30 * (entry_id + 1)) + b"payload")


def index_file(*, key: bytes = KEY, fenced: bool = False, lac: bytes = b"", version: int = 1) -> bytes:
    """The header of an .idx file, and some locations behind it."""
    head = b"BKLE" + struct.pack(">ii", version, len(key)) + key + struct.pack(">i", fenced)
    if version:
        head += struct.pack(">i", len(lac)) + lac
    return head.ljust(1024, b"\0") + struct.pack(">qq", 1 << 32 | 1028, 0)


def index_path(current: Path, ledger: int) -> Path:
    """Where a ledger's index file lies."""
    return current / f"{ledger >> 8 & 0xFF:x}" / f"{ledger & 0xFF:x}" / f"{ledger:x}.idx"


def put_index_file(current: Path, ledger: int, data: bytes) -> Path:
    """Write one."""
    path = index_path(current, ledger)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def ledger_data(*, key: bytes = KEY, fenced: bool = False, lac: bytes | None = None, limbo: bool = False) -> bytes:
    """A value of the RocksDB `ledgers`."""
    data = LedgerData(exists=True, fenced=fenced, masterKey=key)
    if lac is not None:
        data.explicitLac = lac
    if limbo:
        data.limbo = True
    return data.SerializeToString()


def put_rocksdb(path: Path, pairs: dict[bytes, bytes]) -> None:
    """A database with these pairs, made by another process: RocksDB's threads stay where they were started."""
    path.mkdir(parents=True, exist_ok=True)
    program = (
        "import json, sys; from rocksdict import Options, Rdict\n"
        "database = Rdict(sys.argv[1], options=Options(raw_mode=True))\n"
        "for key, value in json.load(sys.stdin): database[bytes.fromhex(key)] = bytes.fromhex(value)\n"
        "database.close()"
    )
    given = json.dumps([(key.hex(), value.hex()) for key, value in pairs.items()])
    subprocess.run([sys.executable, "-c", program, str(path)], input=given, text=True, check=True)
    (path / "rocksdict-config.json").unlink()


def put_logs(current: Path, logs: dict[int, list[bytes]], *, closed: bool = True) -> None:
    """Entry logs by id."""
    current.mkdir(parents=True, exist_ok=True)
    for log_id, entries in logs.items():
        (current / f"{log_id:x}.log").write_bytes(log_model.build(entries, closed=closed))
