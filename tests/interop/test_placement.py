"""Decisions of placement, side by side with Java's policies on the same places and weights."""

import json
import subprocess
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from bookie.client.config import ClientConfig
from bookie.client.contracts import Placement
from bookie.client.placement.factory import placement_for
from bookie.errors import NotEnoughBookies
from tests.client.placement.clusters import Clock, Table
from tests.fixtures.java_peer import JavaPeer

pytestmark = pytest.mark.interop

DRAWS = 12_000
# Six standard deviations of the difference of two such frequencies, at most.
NEAR = 6 * (2 * 0.25 / DRAWS) ** 0.5
CLASSES = {
    "default": "DefaultEnsemblePlacementPolicy",
    "rack": "RackawareEnsemblePlacementPolicy",
    "region": "RegionAwareEnsemblePlacementPolicy",
    "zone": "ZoneawareEnsemblePlacementPolicy",
}
WEIGHTS = {"diskWeightBasedPlacementEnabled": True}
SKEWED = (100, 250, 0, 400, 3000, 120, 90, 700, 60)


def bookie(number: int) -> str:
    """Make an id that needs no look-up."""
    return f"10.0.0.{number + 1}:3181"


def ids(*numbers: int) -> list[str]:
    """Make several ids."""
    return [bookie(number) for number in numbers]


def case(policy: str, places: list[str], **given: Any) -> dict[str, Any]:
    """Make a case with quorums 3 and 2 unless given, with nothing to judge or draw."""
    known = ids(*range(len(places)))
    settings = {"ignoreLocalNodeInPlacementPolicy": True, **given.pop("settings", {})}
    free = dict(zip(known, given.pop("free", ()), strict=False))
    base = {"size": 3, "write": 3, "ack": 2, "ensemble": [], "index": 0, "judged": [], "draws": DRAWS}
    return {
        **base,
        "policy": policy,
        "places": dict(zip(known, places, strict=True)),
        "settings": settings,
        "free": free,
        **given,
    }


def judged(policy: str, places: list[str], seed: int, **given: Any) -> dict[str, Any]:
    """Two hundred random ensembles to judge, some with a bookie that is gone."""
    random = Random(seed)
    known = ids(*range(len(places) + 1))
    size = given.pop("size", 3)
    ensembles = [random.sample(known, size) for _ in range(200)]
    return case(policy, places, judged=ensembles, draws=0, **given)


RACKS = ["/a", "/a", "/b", "/b", "/b", "/c", "/c", "/default-rack", "/d"]
ZONES = ["/x/1", "/x/2", "/x/1", "/y/1", "/y/2", "/y/2", "/z/1", "/z/1", "/z/2"]
REGIONS = ["/x/1", "/x/2", "/x/1", "/y/1", "/y/2", "/y/2", "/z/1", "/z/1", "/z/2"]
ENFORCED = {"enforceMinNumRacksPerWriteQuorum": True}

CASES = {
    "racks judged": judged("rack", RACKS, 1, size=5, settings={"minNumRacksPerWriteQuorum": 3}),
    "racks judged strictly": judged("rack", RACKS, 2, size=4, write=2, settings=ENFORCED),
    "zones judged": judged("zone", ZONES, 3),
    "zones judged in six": judged("zone", ZONES, 4, size=6),
    "regions judged": judged("region", REGIONS, 5),
    "default, weighted": case("default", RACKS, free=SKEWED, settings=WEIGHTS, size=1),
    "racks": case("rack", RACKS),
    "racks, striped": case("rack", RACKS, size=4, write=2),
    "racks, weighted": case("rack", RACKS, free=SKEWED, settings=WEIGHTS),
    "racks, weighted, capped low": case(
        "rack", RACKS, free=SKEWED, settings={**WEIGHTS, "bookieMaxMultipleForWeightBasedPlacement": 1}
    ),
    "racks enforced": case("rack", RACKS, settings=ENFORCED, free=SKEWED),
    "one rack": case("rack", ["/a"] * 4, free=SKEWED[:4], settings=WEIGHTS),
    "one rack, enforced": case("rack", ["/a"] * 4, settings=ENFORCED),
    "same rack replaces": case("rack", RACKS, free=SKEWED, settings=WEIGHTS, ensemble=ids(2, 0, 5)),
    "another rack replaces": case(
        "rack", RACKS, free=SKEWED, settings=WEIGHTS, ensemble=[bookie(n) for n in (8, 0, 5)]
    ),
    "zones, replaced": case("zone", ZONES, ensemble=ids(0, 3, 6)),
    "zones, replaced by weight": case("zone", ZONES, free=SKEWED, settings=WEIGHTS, ensemble=ids(0, 3, 6)),
    "regions, replaced": case("region", REGIONS, free=SKEWED, settings=WEIGHTS, ensemble=ids(0, 3, 6)),
}


def ours(given: dict[str, Any]) -> Placement:
    """Build the same cluster with our classes."""
    table = Table({one.partition(":")[0]: place for one, place in given["places"].items()})
    config = ClientConfig.of({"ensemblePlacementPolicy": CLASSES[given["policy"]], **given["settings"]})
    placement = placement_for(config, Random(11), Clock(), resolver=table)
    placement.bookies_changed(frozenset(given["places"]), frozenset())
    placement.weights_changed(given["free"])
    return placement


def drawn(placement: Placement, given: dict[str, Any]) -> tuple[str, ...]:
    """Draw one choice."""
    try:
        if given["ensemble"]:
            return (placement.replacement(given["write"], given["ack"], given["ensemble"], given["index"]),)
        return placement.new_ensemble(given["size"], given["write"], given["ack"])
    except NotEnoughBookies:
        return ("nobody",)


@pytest.fixture(scope="module")
def java(java_peer: JavaPeer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What Java says to each case, from one process."""
    directory = tmp_path_factory.mktemp("placement")
    asked, reported = directory / "asked.json", directory / "told.json"
    cases = [{**one, "policy": CLASSES[one["policy"]]} for one in CASES.values()]
    asked.write_text(json.dumps(cases))
    run_quietly(java_peer, asked, reported)
    return dict(zip(CASES, json.loads(reported.read_text()), strict=True))


def run_quietly(java_peer: JavaPeer, asked: Path, reported: Path) -> None:
    """Run without the messages of Java's policies, which log every choice that they had to make twice."""
    command = java_peer.command("peer.Placements", str(asked), str(reported), log_level="OFF")
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


@pytest.mark.parametrize("name", CASES)
def test_decisions_are_javas(java: dict[str, Any], name: str) -> None:
    """The verdict on each ensemble is the same, and each bookie is drawn as often for each place of an ensemble, or
    as a
    replacement of another.
    """
    given, reported = CASES[name], java[name]
    placement = ours(given)
    verdicts = [placement.adheres(one, given["write"], given["ack"]).name for one in given["judged"]]
    assert verdicts == reported["adheres"]
    counts = Counter(
        f"{place} {one}" for _ in range(given["draws"]) for place, one in enumerate(drawn(placement, given))
    )
    different = {
        key: (counts[key], reported["chosen"].get(key, 0))
        for key in counts.keys() | reported["chosen"].keys()
        if abs(counts[key] - reported["chosen"].get(key, 0)) > NEAR * given["draws"]
    }
    assert not different, "ours, Java's"
