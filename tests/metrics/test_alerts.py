"""The alert rules of conf/prometheus: promtool accepts them, each fires when it should, and their metrics exist."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.fixtures.prometheus import Unavailable, find

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "conf/prometheus/alerts.yaml"
AUDITOR = "replication_auditor_NUM_LEDGERS_HAVING"
ONE = '{job="bookie", instance="one"}'
FIRES: dict[str, tuple[list[str], str, str, int]] = {
    "BookieDown": ([f"up{ONE}"], "0x10", "1x10", 3),
    "BookieNotRegistered": ([f"bookie_SERVER_STATUS{ONE}"], "-1x10", "1x10", 3),
    "BookieReadOnly": ([f"bookie_SERVER_STATUS{ONE}"], "0x20", "1x20", 12),
    "TooFewWritableBookies": (
        [f'bookie_SERVER_STATUS{{instance="{n}"}}' for n in range(3)] + [f"bookie_SERVER_STATUS{ONE}"],
        "0x20",
        "1x20",
        7,
    ),
    "LedgersWithoutReplica": ([f"{AUDITOR}_NO_REPLICA_OF_AN_ENTRY{ONE}"], "2x30", "0x30", 20),
    "LedgersBelowAckQuorum": ([f"{AUDITOR}_LESS_THAN_AQ_REPLICAS_OF_AN_ENTRY{ONE}"], "2x60", "0x60", 40),
    "LedgersLackReplicas": ([f"{AUDITOR}_LESS_THAN_WQ_REPLICAS_OF_AN_ENTRY{ONE}"], "2x400", "0x400", 380),
    "BookiesLost": ([f"pybookie_auditor_bookies_lost{ONE}"], "1x30", "0x30", 20),
    "NoAuditor": ([f"pybookie_auditor_elected{ONE}"], "0x30", "1x30", 20),
    "LedgerDiskFillsUp": ([f"bookie_ledger_dir__data_ledgers_usage{ONE}"], "93x30", "80x30", 20),
    "JournalSyncsSlow": (['bookie_journal_JOURNAL_SYNC{quantile="0.99", success="true"}'], "900x30", "5x30", 20),
    "JournalAtLimit": ([f"pybookie_journal_at_limit{ONE}"], "1x30", "0x30", 10),
    "RequestsRefused": ([f"bookkeeper_server_ADD_ENTRY_REJECTED{ONE}"], "0+9x60", "7x60", 30),
    "SanityTestFailed": ([f"bookie_SERVER_SANITY{ONE}"], "0x30", "-1x30", 10),
    "DamageFound": ([f"pybookie_scrub_found_digest_total{ONE}"], "0 0 1x30", "1x30", 10),
    "LedgersInQuarantine": (['pybookie_quarantined_ledgers{instance="one", ledgerDir="/a"}'], "1x30", "0x30", 20),
    "CollectionNeedsConfirmation": ([f"pybookie_gc_alarm{ONE}"], "1x30", "0x30", 5),
    "CollectionFails": ([f"pybookie_gc_failed_cycles_total{ONE}"], "0+1x60", "1x60", 60),
}
"""For each alert: its series, values with which it fires and does not, and the minutes until it does."""


def rules() -> list[dict[str, str]]:
    """Return all rules."""
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def promtool(*words: str) -> str:
    """Run promtool, and return what it prints."""
    try:
        program = find("promtool")
    except Unavailable as reason:
        pytest.skip(str(reason))
    done = subprocess.run([program, *words], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_their_metrics_exist() -> None:
    """Each name in an expression is in the list of metrics; every alert has an example here."""
    listed = set(re.findall(r"^\| (\w+) \|", (ROOT / "docs/metrics.md").read_text(), re.MULTILINE)) | {"up"}
    found = {name for rule in rules() for name in re.findall(r"\b(?:\w*book\w+_\w+|replication_\w+)\b", rule["expr"])}
    assert "bookie_SERVER_STATUS" in found
    assert {name for name in found if name not in listed} == {"bookie_ledger_dir_"}  # a pattern of names
    assert [rule["alert"] for rule in rules()] == list(FIRES)


@pytest.mark.thorough
def test_each_fires(tmp_path: Path) -> None:
    """With the values for which it was made, after the time that it waits, and not with others."""
    tests = [
        {
            "interval": "1m",
            "input_series": [{"series": name, "values": values} for name in series],
            "promql_expr_test": [
                {
                    "expr": f'count(ALERTS{{alertname="{alert}", alertstate="firing"}})',
                    "eval_time": f"{minutes}m",
                    "exp_samples": [{"labels": "{}", "value": 1}] if bad else [],
                }
            ],
        }
        for alert, (series, wrong, right, minutes) in FIRES.items()
        for bad, values in ((True, wrong), (False, right))
    ]
    page = tmp_path / "tests.yaml"
    page.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}))
    assert f"{len(FIRES)} rules found" in promtool("check", "rules", str(RULES))
    promtool("test", "rules", str(page))
