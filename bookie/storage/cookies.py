"""Cookies: the identity of a bookie, stored in each of its directories and in the metadata store.

The file `current/VERSION` of each journal, ledger and index directory, and `cookies/<bookie id>` in the metadata
store, hold the same bytes: a layout number, then protobuf text (in layout 3, plain lines). `validate_cookies` runs at
every start, on the start-up thread, before any storage file is created. A bookie with a missing, foreign or
contradictory cookie does not start, because it would answer for ledgers that it has lost. Errors name both sides and
the remedy.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from google.protobuf import text_format

from bookie._fast.base import fatal
from bookie.durable import make_directories, replace_file
from bookie.errors import ConfigurationError, CookieError
from bookie.pb.data_formats_pb2 import CookieFormat
from bookie.storage.layout import current

LAYOUT_VERSION = 5
LAYOUT_OLDEST = 3
FILE_NAME = "VERSION"
OLD_LAYOUT_FILES = ("VERSION", "lastId", "lastMark", "*.log", "*.txn", "*.idx")
RESTORE = "restore it: this bookie's other directories have the same cookie, and `bkadmin cookie_generate` prints it"
ESCAPES = {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r", 34: '\\"', 39: "\\'", 92: "\\\\"}


class CookieStore(Protocol):
    """The cookies in the metadata store; `bookie.metadata` implements it."""

    def read(self, bookie_id: str) -> tuple[bytes, int] | None: ...
    def write(self, bookie_id: str, text: bytes, version: int | None) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Cookie:
    """The properties of a bookie that must not change while it has data. Directories lack `/current`."""

    bookie_id: str
    journal_directories: str
    """The paths, separated by commas."""
    ledger_directories: str
    """The number of paths, then each path preceded by a TAB; index directories likewise."""
    index_directories: str | None = None
    """None if the index directories are the ledger directories."""
    instance_id: str | None = None
    layout: int = LAYOUT_VERSION

    def to_bytes(self) -> bytes:
        """Return the text in the current layout, byte for byte as Apache BookKeeper writes it."""
        lines = [
            str(LAYOUT_VERSION),
            f'bookieHost: "{_escape(self.bookie_id)}"',
            f'journalDir: "{_escape(self.journal_directories)}"',
            f'ledgerDirs: "{_escape(self.ledger_directories)}"',
        ]
        if self.instance_id is not None:
            lines.append(f'instanceId: "{_escape(self.instance_id)}"')
        if self.index_directories is not None:
            lines.append(f'indexDirs: "{_escape(self.index_directories)}"')
        return "".join(f"{line}\n" for line in lines).encode()

    def difference(self, other: "Cookie") -> tuple[str, str | None, str | None] | None:
        """Return the first field that differs, as (name in the text, ours, theirs), or None if there is none."""
        pairs = (
            ("bookieHost", self.bookie_id, other.bookie_id),
            ("journalDir", self.journal_directories, other.journal_directories),
            ("ledgerDirs", self.ledger_directories, other.ledger_directories),
            (
                "indexDirs",
                self.index_directories or self.ledger_directories,
                other.index_directories or other.ledger_directories,
            ),
            ("instanceId", self.instance_id, other.instance_id),
        )
        return next((pair for pair in pairs if pair[1] != pair[2]), None)


def make_cookie(
    bookie_id: str,
    *,
    journals: Sequence[Path],
    ledgers: Sequence[Path],
    indexes: Sequence[Path] = (),
    instance_id: str | None,
) -> Cookie:
    """Return the cookie that the configuration implies; `indexes` is empty unless index directories are configured."""
    return Cookie(
        bookie_id=bookie_id,
        journal_directories=",".join(map(str, journals)),
        ledger_directories=_count_and_paths(ledgers),
        index_directories=_count_and_paths(indexes) if indexes else None,
        instance_id=instance_id,
    )


def parse_cookie(text: bytes, where: str) -> Cookie:
    """Parse a cookie of layout 3 to 5. Raises CookieError, which names the location `where`."""
    first, _, body = text.partition(b"\n")
    if not re.fullmatch(rb"\s*[0-9]+\s*", first):
        raise CookieError(f"{where} is not a cookie: it starts with {first[:40]!r}; {RESTORE}")
    layout = int(first)
    if not LAYOUT_OLDEST <= layout <= LAYOUT_VERSION:
        remedy = "upgrade this bookie" if layout > LAYOUT_VERSION else "upgrade it with Apache BookKeeper first"
        raise CookieError(
            f"{where} has layout {layout}; the known layouts are {LAYOUT_OLDEST} to {LAYOUT_VERSION}: {remedy}"
        )
    try:
        return _from_lines(body) if layout == 3 else _from_text(body, layout)
    except (text_format.ParseError, ValueError) as error:
        raise CookieError(f"{where} cannot be read as a cookie of layout {layout}: {error}; {RESTORE}") from error


def cookie_of(directory: Path) -> Cookie:
    """Read the cookie of a configured directory. Raises CookieError if it is missing or cannot be read."""
    path = _version_file(directory)
    try:
        return parse_cookie(path.read_bytes(), str(path))
    except OSError as error:
        raise CookieError(
            f"{path} cannot be read: {error.strerror}; repair the directory or its permissions"
        ) from error


def validate_cookies(
    wanted: Cookie,
    store: CookieStore,
    directories: Iterable[Path],
    *,
    candidate_ids: Sequence[str] = (),
    allow_expansion: bool = False,
    write_file: "Callable[[Path, bytes], None] | None" = None,
) -> None:
    """Compare the cookies of all `directories` and of the metadata store with `wanted`; if the bookie is new, write
    them all.

    `candidate_ids` are ids that this bookie may have had before: a cookie under one of them must match as well.
    Raises CookieError or ConfigurationError; nothing is changed then.
    """
    roots = list(dict.fromkeys(directories))
    if allow_expansion and len(_split_paths(wanted.ledger_directories)) > 1:
        raise ConfigurationError(
            "allowStorageExpansion=true is not supported with several ledgerDirectories: a ledger lives in directory "
            "(ledger id modulo the number of directories), so adding one would hide ledgers; set it to false"
        )
    stored = _read_store(wanted, store, candidate_ids)
    lacking = [root for root in roots if not _read_directory(wanted, root)]
    if wanted.bookie_id in stored:
        if lacking:
            raise CookieError(_lost(wanted, lacking))
        return
    if len(lacking) < len(roots):
        stamped = next(root for root in roots if root not in lacking)
        raise CookieError(
            f"{_version_file(stamped)} exists, but the metadata store has no cookie of bookie {wanted.bookie_id}: "
            "check metadataServiceUri; or, if the cookie was deleted by mistake, restore it with bkadmin cookie_create "
            f"{wanted.bookie_id} -cf {_version_file(stamped)}; or, to give up this bookie's data, empty its "
            "directories"
        )
    _require_empty(roots)
    _stamp(wanted, store, roots, write_file or write_cookie_file)


def write_cookie_file(path: Path, text: bytes) -> None:
    """Write the file atomically and sync it to disk. A failure is fatal to the process."""
    try:
        make_directories(path.parent)
        replace_file(path, text)
    except OSError as error:
        fatal.trip(f"write of {path}", error.errno or 0)
        raise CookieError(f"{path} could not be written: {error.strerror}; restart the bookie") from error


def _read_store(wanted: Cookie, store: CookieStore, candidate_ids: Sequence[str]) -> set[str]:
    """Return the ids under which the metadata store has a cookie. All of these cookies match `wanted`."""
    found = set()
    for bookie_id in dict.fromkeys([wanted.bookie_id, *candidate_ids]):
        entry = store.read(bookie_id)
        if entry is None:
            continue
        where = f"the metadata store's cookie of {bookie_id}"
        _require_equal(wanted, parse_cookie(entry[0], where), where)
        found.add(bookie_id)
    return found


def _read_directory(wanted: Cookie, root: Path) -> bool:
    path = _version_file(root)
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise CookieError(
            f"{path} cannot be read: {error.strerror}; repair the directory or its permissions"
        ) from error
    _require_equal(wanted, parse_cookie(text, str(path)), str(path))
    return True


def _require_equal(wanted: Cookie, found: Cookie, where: str) -> None:
    difference = wanted.difference(found)
    if difference is None:
        return
    name, ours, theirs = difference
    remedies = {
        "bookieHost": f"set bookieId={theirs}, or use this bookie's own directories; or, if this bookie was renamed "
        f"to {ours}, run bkadmin updatecookie -b --old {theirs}",
        "journalDir": "restore the previous value of journalDirectories",
        "ledgerDirs": "restore the previous value of ledgerDirectories, including the order",
        "indexDirs": "restore the previous value of indexDirectories, including the order",
        "instanceId": "metadataServiceUri names a cluster other than the one that this data belongs to",
    }
    raise CookieError(
        f"{where} says {name}={theirs!r}, but this bookie has {name}={ours!r}: {remedies[name]}; "
        "bkadmin updatecookie -l shows all its cookies"
    )


def _lost(wanted: Cookie, lacking: list[Path]) -> str:
    files = ", ".join(str(_version_file(root)) for root in lacking)
    return (
        f"the metadata store has a cookie of bookie {wanted.bookie_id}, but {files} is missing: mount the right disk; "
        f"or, if the data is lost, run bkadmin recover -d {wanted.bookie_id}, which copies the data from other bookies "
        "and deletes the cookie, so that the bookie can start empty"
    )


def _require_empty(roots: list[Path]) -> None:
    for root in roots:
        inside = current(root)
        try:
            found = sorted(inside.iterdir()) if inside.is_dir() else []
            found += sorted(path for pattern in OLD_LAYOUT_FILES for path in root.glob(pattern))
        except OSError as error:
            raise CookieError(f"{root} cannot be listed: {error.strerror}; repair its permissions") from error
        if found:
            raise CookieError(
                f"{found[0]} exists, but neither {root} nor the metadata store has a cookie: "
                "use an empty directory, or restore its VERSION file"
            )


def _stamp(wanted: Cookie, store: CookieStore, roots: list[Path], write_file: Callable[[Path, bytes], None]) -> None:
    """Write the cookies, directories first: a cookie in the metadata store then proves that every directory has one."""
    text = wanted.to_bytes()
    for root in roots:
        write_file(_version_file(root), text)
    store.write(wanted.bookie_id, text, None)


def _version_file(root: Path) -> Path:
    return current(root) / FILE_NAME


def _count_and_paths(paths: Sequence[Path]) -> str:
    return "\t".join([str(len(paths)), *map(str, paths)])


def _split_paths(text: str) -> list[str]:
    return text.split("\t")[1:]


def _escape(text: str) -> str:
    return "".join(ESCAPES.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}") for byte in text.encode())


def _from_lines(body: bytes) -> Cookie:
    lines = body.decode().splitlines()
    if len(lines) < 3:
        raise ValueError(f"{len(lines)} lines follow the layout number instead of 3")
    return Cookie(bookie_id=lines[0], journal_directories=lines[1], ledger_directories=lines[2], layout=3)


def _from_text(body: bytes, layout: int) -> Cookie:
    if odd := re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", body):  # a cookie escapes them; some would pass for line ends
        raise ValueError(f"byte {odd.start()} after the layout number is {odd[0][0]:#04x}, which must be escaped")
    message = text_format.Parse(body, CookieFormat(), allow_unknown_field=True)
    if not message.IsInitialized():
        lacking = message.FindInitializationErrors()  # type: ignore[attr-defined]  # not in the published types
        raise ValueError(f"the required fields {', '.join(lacking)} are missing")
    return Cookie(
        bookie_id=message.bookieHost,
        journal_directories=message.journalDir,
        ledger_directories=message.ledgerDirs,
        index_directories=message.indexDirs if message.HasField("indexDirs") else None,
        instance_id=message.instanceId if message.HasField("instanceId") else None,
        layout=layout,
    )
