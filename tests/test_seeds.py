"""docs/seeds.md names what exists: every file, every test, and a reason for each row that is not complete."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROWS = [line for line in (ROOT / "docs/seeds.md").read_text().splitlines() if line.startswith("| ")]
NAMED = re.compile(r"`([\w./-]+/[\w./-]+?\.\w+)(?:::(\w+))?`")


@cache
def functions_of(path: Path) -> frozenset[str]:
    """Return the names of the functions of a file of tests."""
    return frozenset(node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("row", [row for row in ROWS if not row.startswith("| requirement")])
def test_each_row_names_what_exists(row: str) -> None:
    """The code and the tests of a requirement exist, and a partial row says why."""
    _, requirement, state, code, test, figure, _ = (cell.strip() for cell in re.split(r"(?<!\\)\|", row))
    assert requirement
    assert state in {"done", "partial"}
    if state == "partial":
        assert len(figure.split()) >= 8, "a partial row says why in a sentence"
    else:
        assert NAMED.search(code), "names no code"
        assert NAMED.search(test), "names no test"
    for path, name in NAMED.findall(f"{code} {test} {figure}"):
        assert (ROOT / path).is_file(), path
        assert not name or name in functions_of(ROOT / path), f"{path}::{name}"


def test_every_document_is_there() -> None:
    """All four documents have rows."""
    assert len(ROWS) > 40
