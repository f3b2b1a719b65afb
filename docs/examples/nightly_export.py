"""Audit a cluster, export its ledgers to Parquet and read them back. Needs `pip install 'bookie[spark]'`.

python docs/examples/nightly_export.py
python docs/examples/nightly_export.py /exports zk+hierarchical://h1:2181/ledgers

Without a URI, the program starts a cluster of three bookies with a few ledgers. It writes audit/report.html, data/ and
the states of both jobs to a directory of the day, so that an interrupted run continues with the next call. If the audit
has findings, the ledgers are exported nevertheless, and the exit code is 3: the report names what bookies lack, and all
exported entries were verified.
"""

import datetime as dt
import json
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from pyspark.sql import SparkSession

from bookie.client import BookKeeper
from bookie.local import LocalCluster
from bookie.spark.bkpipe import run


def fill(uri: str) -> None:
    """Write three ledgers of a thousand orders each."""
    with BookKeeper(uri) as bk:
        for batch in range(3):
            with bk.create_ledger(ensemble_size=3, write_quorum_size=2, ack_quorum_size=2, password=b"") as ledger:
                for number in range(1000):
                    ledger.append_async(b'{"batch": %d, "order": %d}' % (batch, number))


def night(root: Path, uri: str) -> int:
    """Run both jobs; return 0, or the exit code of the job that failed or has findings."""
    today = root / dt.datetime.now(dt.UTC).date().isoformat()
    where = ["-u", uri, "--master", "local[2]"]
    audit = ["audit", *where, "--sample", "all", "--to", f"{today}/audit", "--state", f"{today}/audit.state"]
    audited = run([*audit, "--summary", f"{today}/audit.json"])
    if audited not in {0, 3}:
        return audited
    export = ["export", *where, "--to", f"{today}/data", "--state", f"{today}/export.state"]
    exported = run([*export, "--summary", f"{today}/export.json"])
    if exported:
        return exported
    findings = json.loads((today / "audit.json").read_text())["findings"]
    expected = json.loads((today / "export.json").read_text())["entries"]
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    data = spark.read.schema("entry_id bigint, value binary").option("recursiveFileLookup", "true")
    found = data.option("pathGlobFilter", "*.parquet").parquet(f"{today}/data").count()
    spark.stop()
    print(f"{findings} findings; {expected} entries exported, {found} read back")
    return audited if found == expected else 1


if __name__ == "__main__":
    with ExitStack() as ends:
        if len(sys.argv) > 2:
            sys.exit(night(Path(sys.argv[1]), sys.argv[2]))
        here = Path(sys.argv[1] if len(sys.argv) > 1 else ends.enter_context(tempfile.TemporaryDirectory()))
        cluster = ends.enter_context(LocalCluster(3))
        fill(cluster.uri)
        sys.exit(night(here, cluster.uri))
