"""The sizes of the ledgers that the sink writes: those that are not given are those of `create_ledger`."""

from types import SimpleNamespace

import pytest

from bookie.errors import ConfigurationError
from bookie.spark.sink.settings import settings_of

VALUE = SimpleNamespace(name="value", dataType=SimpleNamespace(simpleString=lambda: "binary"))


@pytest.mark.parametrize(
    ("given", "sizes"),
    [
        ({}, (3, 3, 2)),
        ({"ensemblesize": "5"}, (5, 5, 3)),
        ({"ensemblesize": "1"}, (1, 1, 1)),
        ({"ensemblesize": "5", "writequorumsize": "3"}, (5, 3, 2)),
        ({"writequorumsize": "2", "ackquorumsize": "1"}, (3, 2, 1)),
    ],
)
def test_what_is_not_given(given: dict[str, str], sizes: tuple[int, int, int]) -> None:
    """Each entry is written to the whole ensemble, and waits for most of its copies."""
    options = {"metadataserviceuri": "zk+hierarchical://127.0.0.1:2181/ledgers", "log": "a", **given}
    schema = SimpleNamespace(fields=[VALUE])
    assert settings_of(options, schema, overwrite=False).sizes == sizes
    with pytest.raises(ConfigurationError, match="ensemble >= write quorum >= ack quorum"):
        settings_of({**options, "ackquorumsize": "9"}, schema, overwrite=False)
