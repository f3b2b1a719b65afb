"""Clusters are drawn so that their clients can begin."""

import random

from tests.engine.cluster.draw import ClusterDraw

SEEDS = range(2000)


def test_calls_reach_the_store_within_a_session() -> None:
    """A driver gives up a call after a session, so sessions last at least as long as the slowest way to the store."""
    draws = [ClusterDraw.of(random.Random(f"cluster-{seed}")) for seed in SEEDS]
    short = [seed for seed, draw in zip(SEEDS, draws, strict=True) if draw.session_s < 2 * draw.store_s]
    assert not short
    assert all(draw.config.session_timeout_s == draw.session_s for draw in draws)
    assert sum(draw.session_s == 0.2 for draw in draws) > len(draws) / 5, "short sessions are still drawn"
