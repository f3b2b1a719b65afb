"""Plans as JSON, so that a shrunken world can be printed, kept and replayed, whatever seeds stand for by then."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.engine.decay import Decay
from tests.engine.plan import Operation, PeerPlan, Plan, Rule, RunPlan
from tests.engine.runtime import Action, Op

__all__ = ["read_plan", "written"]


def written(plan: Plan) -> str:
    """Return the text of a plan, with one line for each run."""
    given = asdict(plan)
    runs = ",\n  ".join(json.dumps(run) for run in given.pop("runs"))
    return json.dumps(given)[:-1] + f', "runs": [\n  {runs}\n]}}\n'


def read_plan(path: Path) -> Plan:
    """Return the plan that a file holds."""
    given = json.loads(path.read_text())
    runs = tuple(map(_run, given.pop("runs")))
    return Plan(**given | {"ledgers": tuple(given["ledgers"]), "runs": runs, "planted": ()})


def _run(given: dict[str, Any]) -> RunPlan:
    rules = tuple(
        Rule(**one | {"ops": tuple(map(Op, one["ops"])), "action": Action(one["action"])}) for one in given["rules"]
    )
    peers = tuple(PeerPlan(**one | {"ledgers": tuple(one["ledgers"])}) for one in given["peers"])
    operations = tuple(Operation(**one) for one in given["operations"])
    decays = tuple(Decay(**one) for one in given["decays"])
    return RunPlan(**given | {"rules": rules, "peers": peers, "operations": operations, "decays": decays})
