"""The disk loses one write of the index, in turn each of a world (index.read_back): nothing acknowledged is denied."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.engine.plan_files import read_plan, written
from tests.engine.test_worlds import played

PLAN = Path(__file__).parent / "plans" / "lost_page.json"


@pytest.mark.parametrize(
    "lost", [[8, 11, 14, 20], pytest.param([*range(1, 60)], marks=pytest.mark.thorough)], ids=["some", "each"]
)
def test_b7_a_lost_page_of_the_index_is_noticed_by_its_commit(tmp_path: Path, lost: list[int]) -> None:
    """B7: the page holds an older state of itself, which is sound, and is noticed before anything is denied."""
    plan = read_plan(PLAN)
    first = plan.runs[0]
    for nth in lost:
        rule = replace(first.rules[0], nth=nth)
        text = written(replace(plan, runs=(replace(first, rules=(rule,)), *plan.runs[1:])))
        (tmp_path / f"{nth}.json").write_text(text)
    played(",".join(map(str, tmp_path.glob("*.json"))), "--shrink", "0")
