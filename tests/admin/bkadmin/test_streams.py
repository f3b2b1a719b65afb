"""`bkadmin produce`, `consume` and `tail` beside each other, each in a process of its own, as in a shell."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bookie.client import BookKeeper
from bookie.local import LocalCluster

pytest_plugins = ["bookie.local.fixtures"]
pytestmark = pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives")

ROOT = Path(__file__).resolve().parents[3]
LINES = [b"one", b"", b"three \xff", b"f" * 100_000]


def bkadmin(cluster: LocalCluster, *words: object) -> subprocess.Popen[bytes]:
    """Start the command."""
    command = [sys.executable, "-m", "bookie_admin.bkadmin.main", *map(str, words), "-u", cluster.uri]
    return subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    )


@pytest.mark.thorough
def test_lines_become_entries_and_lines_again(bookie_cluster: LocalCluster) -> None:
    """Every byte comes back, from the ledger and from the log; JSON has the ids. A wrong call names what is missing."""
    produced, _ = bkadmin(bookie_cluster, "produce", "--log", "lines", "-o", "json").communicate(b"\n".join(LINES))
    made = json.loads(produced)
    assert (made["entries"], made["bytes"]) == (len(LINES), sum(map(len, LINES)))
    for source in ([made["ledger"]], ["--log", "lines"]):
        out, _ = bkadmin(bookie_cluster, "consume", *source).communicate()
        assert out == b"".join(line + b"\n" for line in LINES)
    rows, _ = bkadmin(bookie_cluster, "consume", made["ledger"], "-o", "json").communicate()
    found = [json.loads(row) for row in rows.splitlines()]
    assert [(row["ledger"], row["entry"]) for row in found] == [(made["ledger"], entry) for entry in range(len(LINES))]
    assert found[2]["data"] == "three \\xff"
    for wrong in ([], [7, "--log", "lines"]):
        process = bkadmin(bookie_cluster, "consume", *wrong)
        assert b"name either a LEDGER or a log" in process.communicate()[1]
        assert process.returncode == 2


def test_a_tail_shows_what_comes(bookie_cluster: LocalCluster) -> None:
    """The last entries at once, new ones as they are acknowledged, those of the next ledger, and the end of one."""
    with BookKeeper(bookie_cluster.uri) as bk:
        bk.logs.create("live")
        bk.logs.create("empty at first")
    with bkadmin(bookie_cluster, "tail", "--log", "empty at first") as waiting:
        bkadmin(bookie_cluster, "produce", "--log", "empty at first").communicate(b"begun\n")
        assert waiting.stdout
        assert waiting.stdout.readline() == b"begun\n"
        waiting.kill()
    with bkadmin(bookie_cluster, "produce", "--log", "live") as writer:
        assert writer.stdin
        writer.stdin.write(b"".join(b"%d\n" % number for number in range(100)))
        with BookKeeper(bookie_cluster.uri) as bk:
            while not (ledgers := bk.logs.get("live").value.ledgers):
                continue
            with bk.open_ledger(ledgers[0], recovery=False) as reader, reader.follow(99) as batches:
                next(batches)  # all that was written is acknowledged, and the LAC tells
        with (
            bkadmin(bookie_cluster, "tail", "--log", "live", "-n", 3) as of_log,
            bkadmin(bookie_cluster, "tail", ledgers[0], "-n", 2) as of_ledger,
        ):
            assert of_log.stdout and of_ledger.stdout  # noqa: PT018
            assert [of_log.stdout.readline() for _ in range(3)] == [b"97\n", b"98\n", b"99\n"]
            assert [of_ledger.stdout.readline() for _ in range(2)] == [b"98\n", b"99\n"]
            writer.stdin.write(b"live\n")
            assert of_log.stdout.readline() == of_ledger.stdout.readline() == b"live\n"
            writer.stdin.close()
            assert of_ledger.stdout.read() == b""
            assert of_ledger.wait() == 0
            bkadmin(bookie_cluster, "produce", "--log", "live").communicate(b"next\n")
            assert of_log.stdout.readline() == b"next\n"
            of_log.send_signal(signal.SIGINT)
            assert (of_log.stdout.read(), of_log.wait()) == (b"", 0)
