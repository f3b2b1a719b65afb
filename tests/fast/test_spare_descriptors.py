"""Test descriptors reserved for storage (module base.spare_descriptors), in a process that has few of them."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

from tests.fixtures.bookies import ROOT

LIMITED = """
    import os, resource, sys
    from pathlib import Path
    from bookie._fast.base import spare_descriptors
    from tests.storage.opened import Opened
    from tests.reference.storage import entry

    KEPT, LIMIT = 64, 256
    resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, LIMIT))
    one = Opened(Path(sys.argv[1]))
    assert spare_descriptors.keep(KEPT) == KEPT == spare_descriptors.kept()
    taken = []
    try:
        while True:
            taken.append(os.dup(0))
    except OSError as error:
        assert error.errno == 24
"""


def run(tmp_path: Path, lines: str) -> None:
    """Run these lines in a process that has used up all descriptors except the reserved ones."""
    code = textwrap.dedent(LIMITED) + textwrap.dedent(lines)
    command = [sys.executable, "-c", code, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def test_storage_opens_by_giving_one_up(tmp_path: Path) -> None:
    """A reserved descriptor is given up for a file, and reserved again when the file is closed, any number of times."""
    run(
        tmp_path,
        """
        for turn in range(3 * KEPT):
            one.direct.add(entry(1, turn))
            one.checkpoint()
            assert spare_descriptors.kept() >= KEPT - 8
        one.crash()
        """,
    )


def test_free_ones_are_kept_again(tmp_path: Path) -> None:
    """The reserve is filled again as soon as storage opens a file while descriptors are available."""
    run(
        tmp_path,
        """
        one.direct.add(entry(1, 0))
        one.checkpoint()
        for fd in taken:
            os.close(fd)
        one.direct.add(entry(1, 1))
        one.checkpoint()
        assert spare_descriptors.kept() == KEPT
        one.crash()
        """,
    )
