"""Requests to the HTTP port of a bookie whose metadata store is silent: they fail soon and in words, and those that do
not need the store are answered meanwhile.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from bookie_admin.http.routes import ROUTES
from tests.admin.http.conftest import Answer, Cluster, Port
from tests.fixtures.bookies import BookieProcess

pytestmark = pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives")

SOON_S = 8.0
"""Requests that need the store take about 3 s; the machine may be busy."""
AT_ONCE_S = 2.5
PARAMS = "?ledger_id=0&log=x&name=x&names=x"


@pytest.fixture
def alone(cluster_of: Callable[..., Cluster]) -> Iterator[Callable[..., tuple[BookieProcess, Port]]]:
    """A function that starts a bookie with an HTTP port and freezes its metadata store, which has one ledger. It
    returns the owner of the store and the port.
    """
    owners = []

    def start(**settings: str) -> tuple[BookieProcess, Port]:
        cluster = cluster_of(2, **settings)
        owner, bookie = cluster.bookies
        cluster.write(3, size=1)
        owner.freeze()
        owners.append(owner)
        return owner, Port(bookie.planes["http"])

    yield start
    for owner in owners:
        owner.thaw()


def timed(port: Port, path: str, method: str = "GET", body: object = None) -> tuple[Answer, float]:
    """Send a request; return the answer, and how long it took."""
    begun = time.monotonic()
    return port.ask(method, path, body), time.monotonic() - begun


def ask_while(waiting: list[Future[tuple[Answer, float]]], port: Port, paths: list[str]) -> None:
    """Ask for these paths as long as others wait, and at least once; each answer must come at once."""
    while True:
        for path in paths:
            answer, took = timed(port, path)
            assert (answer.status, took < AT_ONCE_S) == (200, True), (path, took, answer)
        if all(one.done() for one in waiting):
            return


def test_views_without_the_store(alone: Callable[..., tuple[BookieProcess, Port]]) -> None:
    """Each view that needs the store is answered soon with 503 and a line that names the store and the remedy; each
    other one at once, while those wait.
    """
    _, port = alone()
    paths = [path for path, answers in ROUTES.items() if "GET" in answers and not path.endswith("/sanity")]
    asking = [path for path in paths if ROUTES[path]["GET"].asks_store]
    assert len(asking) > 12
    asking.sort(key=lambda path: "entries" not in path and "read" not in path)  # through the client, with its threads
    own = [path for path in paths if path not in asking]
    with ThreadPoolExecutor(len(asking)) as pool:
        waiting = [pool.submit(timed, port, path + PARAMS) for path in asking]
        ask_while(waiting, port, own)
        for path, (answer, took) in zip(asking, (one.result() for one in waiting), strict=True):
            assert (answer.status, took < SOON_S) == (503, True), (path, took, answer)
            assert answer.headers["content-type"].startswith("text/plain")
            assert answer.text.startswith("metadata store 127.0.0.1:"), (path, answer)
            assert "check metadataServiceUri and that the process with the store runs" in answer.text


def test_many_requests_that_need_the_store(alone: Callable[..., tuple[BookieProcess, Port]]) -> None:
    """They take the threads of no others, not even with the fewest threads, and those that wait for a thread behind
    them hear as soon that the store does not answer.
    """
    owner, port = alone(httpServerThreads="2")
    with ThreadPoolExecutor(12) as pool:
        waiting = [pool.submit(timed, port, "/api/console/cluster") for _ in range(12)]
        ask_while(waiting, port, ["/metrics", "/api/v1/bookie/state", "/api/console/bookie"])
        for one in waiting:
            answer, took = one.result()
            assert (answer.status, took < SOON_S) == (503, True), (took, answer)
            assert "did not answer" in answer.text
    owner.thaw()
    assert port.get("/api/v1/bookie/cluster_info").json["totalBookiesCount"] == 2


def test_changes_without_the_store(alone: Callable[..., tuple[BookieProcess, Port]]) -> None:
    """The caller of a change hears soon what was done and what was not."""
    _, port = alone(httpServerRequestTimeoutMs="8000")
    answer, took = timed(port, "/api/v1/bookie/state/readonly", "PUT", {"readOnly": True})
    assert (answer.status, took < SOON_S) == (503, True), (took, answer)
    assert "the bookie is read-only now, but the metadata store did not take its registration" in answer.text
    assert port.get("/api/v1/bookie/state/readonly").json == {"readOnly": True}
    for method, path, body in (
        ("DELETE", "/api/v1/ledger/delete?ledger_id=0", None),
        ("PUT", "/api/v1/autorecovery/decommission", {"bookie_src": "127.0.0.1:1"}),
    ):
        answer, took = timed(port, path, method, body)
        assert (answer.status, took < SOON_S) == (503, True), (path, took, answer)
        assert "did not answer" in answer.text
