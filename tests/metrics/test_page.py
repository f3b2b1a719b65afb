"""Tests that docs/metrics.md names every metric of a bookie and a client, with its help text."""

import re
from collections.abc import Iterable
from pathlib import Path

from bookie.client import BookKeeper
from bookie.metrics.family import Family
from tests.fixtures.whole_bookie import whole_bookie

PAGE = Path(__file__).resolve().parents[2] / "docs/metrics.md"
BEGIN = "<!-- metrics: what a bookie and a client show, compared by a test -->"
END = "<!-- end of metrics -->"
SECTIONS = (
    ("Requests", r"bookkeeper_server_"),
    ("Journals", r"(bookie|pybookie)_journal_"),
    ("Clients", r"bookie_client_"),
    ("Auto-recovery", r"replication_|pybookie_(auditor|replication)_"),
    ("Garbage collection",
     r"pybookie_gc_|bookie_(\w+_)?(COMPACT|DELETED_|RECLAIM|ACTIVE_|ENTRY_LOG_|\w+_RUNTIME|log_usage)"),
    ("Scrub and repair", r"pybookie_(scrub|repair)_"),
    ("The bookie and its storage", r"bookie_|jvm_"),
    ("Beyond Apache BookKeeper", r"pybookie_|process_"),
)  # fmt: skip


def rows(families: Iterable[Family]) -> str:
    """Return Markdown tables, one for each section, in which a placeholder stands for a directory's path."""
    left = {re.sub(r"_dir_+\w+_usage\Z", "_dir_PATH_usage", one.name): one for one in families}
    lines: list[str] = []
    for title, pattern in SECTIONS:
        lines += [f"### {title}", "", "| name | type | labels | meaning |", "|---|---|---|---|"]
        for name in sorted(name for name in left if re.match(pattern, name)):
            one = left.pop(name)
            labels = dict.fromkeys(label for sample in one.samples for label, _ in sample.labels)
            shown = " ".join(label for label in labels if label not in {"success", "quantile", "le"})
            lines.append(f"| {name} | {one.kind} | {shown} | {one.help} |")
        lines.append("")
    assert not left
    return "\n".join(lines)


def test_the_page_and_the_code_name_the_same(tmp_path: Path) -> None:
    """Name, type, labels and meaning are the same on the page and in the code."""
    with whole_bookie(tmp_path, adminPort="0", autoRecoveryDaemonEnabled="true") as one, BookKeeper(one.uri) as client:
        wanted = rows([*one.bookie.metrics(), *client.metrics()])
    written = PAGE.read_text().partition(BEGIN)[2].partition(END)[0]
    assert written.strip() == wanted.strip(), f"between its marks docs/metrics.md must say:\n{wanted}"
