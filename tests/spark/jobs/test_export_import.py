"""Export from a cluster and import into it: the same entries in the same order, by count and checksum, with Spark."""

import json
from pathlib import Path
from typing import Any

import pytest

from bookie.client import BookKeeper
from bookie.local import LocalCluster
from bookie.spark.bkpipe import run

pytestmark = [
    pytest.mark.interop,
    pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives"),
]
pytest_plugins = ["bookie.local.fixtures"]

PASSWORD = "secret"


def test_what_was_exported_is_imported_again(
    spark: Any, bookie_cluster: LocalCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ledgers of 0, 3 and 500 entries keep their custom metadata. A second call has nothing left to do. A modified
    file is found by its CRC, and the ledger written from it is deleted.
    """
    contents = [[b"entry %d of %d" % (entry, count) for entry in range(count)] for count in (500, 0, 3)]
    sizes: dict[str, Any] = {"ensemble_size": 3, "write_quorum_size": 2, "ack_quorum_size": 2}
    ids = []
    with BookKeeper(bookie_cluster.uri) as bk:
        for entries in contents:
            made = bk.create_ledger(password=PASSWORD.encode(), custom_metadata={"application": b"tests"}, **sizes)
            with made as ledger:
                for entry in entries:
                    ledger.append_async(entry)
            ids.append(ledger.id)
    out = tmp_path / "out"
    common = ["-u", bookie_cluster.uri, "--password", PASSWORD, "-o", "json"]
    export = ["export", *common, "--ledgers", ",".join(map(str, ids)), "--to", str(out), "--state", str(tmp_path / "s")]
    assert run(export) == 0
    reported = json.loads(capsys.readouterr().out)
    assert (reported["ledgers"], reported["entries"]) == (3, 503)
    assert reported["bytes"] == sum(len(entry) for entries in contents for entry in entries)
    assert run(export) == 0
    assert json.loads(capsys.readouterr().out)["resumed_units"] == 3
    assert run(["import", *common, "--from", str(out)]) == 0
    capsys.readouterr()
    new = json.loads((out / "id-map.json").read_text())
    assert list(new) == [str(one) for one in ids]
    with BookKeeper(bookie_cluster.uri) as bk:
        for old, entries in zip(ids, contents, strict=True):
            with bk.open_ledger(new[str(old)], password=PASSWORD.encode()) as back:
                assert back.is_closed
                found = [bytes(one.data) for one in back.read(0, len(entries) - 1)] if entries else []
                assert found == entries
                assert dict(back.custom_metadata) == {"application": b"tests", "bkpipe.imported-from": b"%d" % old}
        before = set(bk.list_ledgers())
        manifest = json.loads((out / "manifest.json").read_text())
        manifest["ledgers"][str(ids[2])]["crc"] += 1
        (out / "manifest.json").write_text(json.dumps(manifest))
        assert run(["import", *common, "--from", str(out), "--unit", "1"]) == 1
        said = capsys.readouterr().err
        assert "the manifest says 3 with" in said
        assert len(set(bk.list_ledgers()) - before) == 2, "of the third one nothing is left"


def test_an_import_goes_on_where_it_ended(
    spark: Any, bookie_cluster: LocalCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """After a ledger that differs was exported again, the import does not repeat those before it."""
    with BookKeeper(bookie_cluster.uri) as bk:
        ids = []
        for count in (10, 0, 20):
            with bk.create_ledger(ensemble_size=1, write_quorum_size=1, ack_quorum_size=1) as ledger:
                for _ in range(count):
                    ledger.append_async(b"x")
            ids.append(ledger.id)
    out = tmp_path / "out"
    common = ["-u", bookie_cluster.uri, "-o", "json"]
    assert run(["export", *common, "--ledgers", ",".join(map(str, ids)), "--to", str(out)]) == 0
    capsys.readouterr()
    whole = (out / "manifest.json").read_text()
    manifest = json.loads(whole)
    manifest["ledgers"][str(ids[2])]["crc"] += 1
    (out / "manifest.json").write_text(json.dumps(manifest))
    words = ["import", *common, "--from", str(out), "--unit", "1", "--state", str(tmp_path / "state")]
    assert run(words) == 1
    assert not (out / "id-map.json").exists()
    (out / "manifest.json").write_text(whole)
    with BookKeeper(bookie_cluster.uri) as bk:
        before = set(bk.list_ledgers())
        capsys.readouterr()
        assert run([*words, "--dry-run"]) == 0
        assert [one["done"] for one in json.loads(capsys.readouterr().out)["ledgers"]] == [True, True, False]
        assert run(words) == 0
        assert json.loads(capsys.readouterr().out)["resumed_units"] == 2
        new = json.loads((out / "id-map.json").read_text())
        assert set(bk.list_ledgers()) - before == {new[str(ids[2])]}
        with bk.open_ledger(new[str(ids[2])]) as back:
            assert back.last_add_confirmed == 19
