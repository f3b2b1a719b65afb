"""Every night: audit a cluster, export its ledgers to Parquet, read them back. Needs `pip install 'bookie[spark]'`.

python docs/examples/nightly_export.py
python docs/examples/nightly_export.py /exports zk+hierarchical://h1:2181/ledgers

Without a cluster it starts one of three bookies with a few ledgers in it. What is written lies in a directory of the
day: audit/report.html, data/ and the states of both jobs, so that a night that was cut short goes on when called again.
A night with findings exports too, and ends with exit code 3: what bookies lack is told, and what was read is verified.
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
    """Three ledgers of a thousand orders each."""
    with BookKeeper(uri) as bk:
        for batch in range(3):
            with bk.create_ledger(ensemble_size=3, write_quorum_size=2, ack_quorum_size=2, password=b"") as ledger:
                for number in range(1000):
                    ledger.append_async(b'{"batch": %d, "order": %d}' % (batch, number))


def night(root: Path, uri: str) -> int:
    """What cron calls: 0, or the exit code of the job that is not well."""
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
