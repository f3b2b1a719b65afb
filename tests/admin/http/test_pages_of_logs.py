"""Pages of the console about logs, from a metadata store that is too slow for the time of a request."""

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bookie.metadata.key_value.driver import KeyValueDriver
from bookie.metadata.key_value.embedded import EmbeddedStore
from bookie.metadata.records.logs import Log
from bookie_admin.http import logs
from bookie_admin.http.request import HttpRequest


def test_each_page_gets_on_if_the_time_is_over_at_once(store: EmbeddedStore) -> None:
    """Names that fit and ledgers of a log come one by one, and none is missing."""
    driver = KeyValueDriver(store, session_timeout_s=10)
    for name in ("a", "b", "other", "c"):
        driver.logs.create(name, Log(ledgers=(5, 6, 7)))

    def ask(endpoint: Any, **params: str) -> Any:
        request = HttpRequest(
            control=cast("Any", SimpleNamespace(metadata=driver)), movers=cast("Any", None), method="GET",
            params=params, body=b"", accept="", caller=cast("Any", None), access_guarded=False, timeout_s=0.0,
        )  # fmt: skip
        return json.loads(endpoint(request).body)

    names: list[str] = []
    after: Any = ""
    while after is not None:
        page = ask(logs.logs, after=after)
        names += [one["log"] for one in page["logs"]]
        after = page["next"]
    assert names == ["a", "b", "c", "other"]
    ledgers: list[int] = []
    while len(ledgers) < 3:
        page = ask(logs.log, name="b", first=str(len(ledgers)))
        ledgers += [one["ledger"] for one in page["ledgers"]]
        assert page["next"] == (len(ledgers) if len(ledgers) < 3 else None)
    assert ledgers == [5, 6, 7]


@pytest.fixture
def store(tmp_path: Any) -> Any:
    """An open embedded store."""
    made = EmbeddedStore(tmp_path / "metadata")
    made.start()
    yield made
    made.stop()
