"""What to replace in an ensemble that violates its placement policy.

It corresponds to Apache BookKeeper's replaceToAdherePlacementPolicy, which exists for the rack-aware policy only. It
works for every policy, since it only tries the policy's own replacements.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations

from bookie.client.contracts import Adherence, Placement
from bookie.errors import NotEnoughBookies

__all__ = ["mended"]

TRIES_MAX = 256


def mended(
    policy: Placement,
    ensemble: Sequence[str],
    write_quorum: int,
    ack_quorum: int,
    *,
    custom: Mapping[str, bytes] | None = None,
) -> dict[int, str]:
    """Return the fewest replacements, by their places, with which the ensemble satisfies the policy.

    The result is empty if the ensemble satisfies the policy already, or if no replacements were found that help.
    """
    if policy.adheres(ensemble, write_quorum, ack_quorum) is not Adherence.FAIL:
        return {}
    places = [some for count in range(1, len(ensemble) + 1) for some in combinations(range(len(ensemble)), count)]
    for some in places[:TRIES_MAX]:
        changed = list(ensemble)
        try:
            for index in some:
                changed[index] = policy.replacement(
                    write_quorum, ack_quorum, tuple(changed), index, excluded=ensemble, custom=custom
                )
        except NotEnoughBookies:
            continue
        if policy.adheres(changed, write_quorum, ack_quorum) is not Adherence.FAIL:
            return {index: changed[index] for index in some}
    return {}
