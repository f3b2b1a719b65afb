"""Test modules policy and gate: the queue of requests that Python answers."""

import threading

from bookie._fast.server.policy import LOGINS, REQUESTS, PolicyRequests


def test_a_stop_ends_every_waiting_thread() -> None:
    """Threads wait in `take` without the GIL, and `stop` ends the waits of all threads, later ones included."""
    requests = PolicyRequests(jobs_max=4, bytes_max=1 << 16, frame_bytes_max=1 << 10)
    taken: list[object] = []
    threads = [
        threading.Thread(target=lambda backlog: taken.append(requests.take(backlog)), args=(backlog,))
        for backlog in (LOGINS, REQUESTS, REQUESTS)
    ]
    for thread in threads:
        thread.start()
    requests.stop()
    for thread in threads:
        thread.join()
    assert [*taken, requests.take(LOGINS)] == [None] * 4
    assert requests.stats()["policy_queued"] == 0
