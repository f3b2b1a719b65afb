"""Each job with --dry-run says what it would do, also in a summary file, and changes nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

from bookie.client import BookKeeper
from bookie.local import LocalCluster
from bookie.spark.bkpipe import run
from bookie.spark.jobs import JOBS
from bookie.spark.reread.access_log import COLUMNS

pytestmark = [
    pytest.mark.interop,
    pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives"),
]
pytest_plugins = ["bookie.local.fixtures"]

EXPORTED = {"version": 1, "order": [7], "ledgers": {"7": {"entries": 3, "bytes": 30}}}


def calls(uri: str, here: Path) -> dict[str, list[str]]:
    """Return a call of each job."""
    to = ["--to", str(here / "out")]
    return {
        "audit": ["-u", uri, *to],
        "diff": ["-u", uri, "--other", uri, "--content", *to],
        "export": ["-u", uri, *to],
        "import": ["-u", uri, "--from", str(here / "exported")],
        "logscan": [str(here / "ledgers"), *to],
        "rereplicate": ["-u", uri, *to],
        "simulate-placement": ["--bookies", "4", *to],
        "thrash": [str(here / "access.csv"), *to],
        "usage": ["-u", uri],
    }


def test_nothing_is_done(
    spark: Any, bookie_cluster: LocalCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No directory is created, no state is kept, no ledger is created or deleted."""
    given = tmp_path / "given"
    (given / "exported").mkdir(parents=True)
    (given / "exported/manifest.json").write_text(json.dumps(EXPORTED))
    (given / "ledgers").mkdir()
    (given / "access.csv").write_text(f"{COLUMNS}\n")
    with BookKeeper(bookie_cluster.uri) as bk:
        with bk.create_ledger(ensemble_size=3) as ledger:
            ledger.append(b"entry")
        before = set(given.rglob("*")), list(bk.list_ledgers())
        planned = calls(bookie_cluster.uri, given)
        assert planned.keys() == JOBS.keys()
        for name, call in planned.items():
            summary = tmp_path / f"{name}.json"
            words = [name, *call, "--dry-run", "--state", str(given / "state"), "--summary", str(summary)]
            assert run([*words, "-o", "json"]) == 0, capsys.readouterr().err
            reported = json.loads(capsys.readouterr().out)
            assert (reported["job"], reported["status"], reported["exit_code"]) == (name, "planned", 0)
            assert json.loads(summary.read_text()) == reported
        assert (set(given.rglob("*")), list(bk.list_ledgers())) == before
