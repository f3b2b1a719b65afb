"""The files of a real bookie by kind, and its marks."""

import struct
from collections import Counter
from pathlib import Path

from bookie.storage.tools.files import last_marks, list_files
from tests.storage.opened import Opened


def test_every_file_of_a_bookie_has_a_kind(tmp_path: Path) -> None:
    """No file that we write is `other`; a foreign file is, and a Java bookie's index is recognized."""
    opened = Opened(tmp_path, ledger_dirs=2, journals=2)
    for ledger in range(4):
        opened.direct.add(struct.pack(">qqqq", ledger, 0, -1, 0), b"k" * 20)
    opened.checkpoint()
    opened.stop()
    directories = [path / "current" for path in (*opened.ledger_dirs, *opened.journal_dirs)]
    (directories[0] / "note.txt").write_text("mine")
    (directories[0] / "ledgers").mkdir()
    (directories[0] / "ledgers" / "CURRENT").write_text("MANIFEST-1")
    found = list(list_files([*directories, directories[0]]))
    kinds = Counter(one.kind for one in found)
    assert {"entry log", "journal", "mark", "last log id", "index"} <= kinds.keys()
    assert (kinds["other"], kinds["index of a Java bookie"], kinds["mark"]) == (1, 1, 4)
    assert len({one.path for one in found}) == len(found)
    assert all(Path(one.path).stat().st_size == one.bytes for one in found)


def test_marks(tmp_path: Path) -> None:
    """The lowest mark of each journal counts; missing, short and damaged files are reported as such."""
    directories = [tmp_path / name for name in ("a", "b", "c")]
    for directory in directories:
        directory.mkdir()
    (directories[0] / "lastMark.0").write_bytes(struct.pack(">qq", 5, 100))
    (directories[1] / "lastMark.0").write_bytes(struct.pack(">qq", 5, 900))
    (directories[2] / "lastMark.0").write_bytes(b"short")
    found = last_marks(directories, 2)
    assert [(one.file_id, one.offset, one.counts) for one in found[:3]] == [
        (5, 100, True),
        (5, 900, False),
        (None, None, False),
    ]
    (directories[0] / "lastMark.0").write_bytes(struct.pack(">qqqq", 5, 100, 0, 0))
    assert [one.file_id for one in last_marks(directories[:2], 2)] == [None, 5, None, None]
    assert [(one.journal, one.file_id, one.counts) for one in found[3:]] == [(1, None, False)] * 3
    assert Path(found[3].path).name == "lastMark.1"
    assert Path(last_marks(directories)[0].path).name == "lastMark"
