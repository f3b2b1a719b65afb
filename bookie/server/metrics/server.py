"""Metrics of the data port: requests, connections, and the I/O loops behind them."""

from collections.abc import Iterator, Mapping, Sequence

from bookie._fast.server.rejections import REASON_WORDS
from bookie._fast.server.stats import STATUS_WORDS
from bookie.metrics.family import Family, Kind, Sample
from bookie.server.metrics.rows import counters, gauges
from bookie.server.requests.authentication import UserCounts

__all__ = ["refusals", "ROWS", "thread_pool", "turned_away", "users"]

NOBODY = "nobody"

ROWS = (
    *counters(
        ("refused_adds", "bookkeeper_server_ADD_ENTRY_REJECTED",
         "Adds refused because an I/O loop had too many that were not answered yet."),
        ("refused_reads", "bookkeeper_server_READ_ENTRY_REJECTED",
         "Reads refused because too many waited for the disk."),
        ("bytes_in", "pybookie_received_bytes_total", "Bytes received by the data port."),
        ("bytes_out", "pybookie_sent_bytes_total", "Bytes sent by the data port."),
        ("read_bytes", "bookie_READ_BYTES", "Bytes of entries in responses to reads."),
        ("stalls", "bookie_throttled_write_requests",
         "Adds that waited for space in the write cache or the journal."),
        ("stalls_refused", "bookie_rejected_write_requests", "Of these adds, those finally refused."),
        ("read_entries", "pybookie_read_entries_total", "Entries in responses to reads, single and batched."),
        ("deferred_adds", "pybookie_deferred_adds_total", "Adds acknowledged before their sync, as requested."),
        ("write_closes", "pybookie_write_closes_total", "Write closes."),
        ("forces", "bookie_BOOKIE_FORCE_LEDGER", "Requests to force a ledger to disk."),
        ("polled_absent", "bookkeeper_server_READ_LAST_ENTRY_NOENTRY_ERROR",
         "Entries requested by a long poll that this bookie does not have."),
        ("fences", "pybookie_fences_total", "Reads that fence a ledger."),
        ("auths", "pybookie_authentication_messages_total", "Authentication messages received."),
        ("auth_accepted", "pybookie_authentication_accepted_total", "Connections authenticated."),
        ("auth_rejected", "pybookie_authentication_rejected_total",
         "Connections closed because of wrong credentials."),
        ("auth_other_plugin", "pybookie_authentication_other_plugin_total",
         "Authentication messages for a plugin that is not configured."),
        ("refused_rights", "pybookie_requests_without_right_total",
         "Requests refused because the user lacks the right."),
        ("refused_unauthenticated", "pybookie_requests_unauthenticated_total",
         "Requests refused because their connection was not authenticated."),
        ("accepted", "pybookie_connections_accepted_total", "Connections accepted."),
        ("refused", "pybookie_connections_refused_total", "Connections refused because there were too many."),
        ("refused_address", "pybookie_connections_refused_by_address_total",
         "Connections refused because their address had too many."),
        ("refused_by_connection", "pybookie_requests_refused_by_connection_total",
         "Requests refused because their connection had too many that were not answered yet."),
        ("refused_urgent", "pybookie_urgent_requests_refused_total",
         "Fencing reads and high-priority requests refused because even their additional limit was reached."),
        ("held_back", "pybookie_connections_held_back_total",
         "Times that a connection was not read because too many of its requests were not answered yet."),
        ("choked", "pybookie_connections_choked_total",
         "Times that a connection was not read because too many of its responses were unsent, or waited for the disk."),
        ("closed_unauthenticated", "pybookie_connections_closed_unauthenticated_total",
         "Connections closed because they did not authenticate in time."),
        ("closed_idle", "pybookie_connections_closed_idle_total", "Connections closed because they were idle."),
        ("closed_by_limit", "pybookie_connections_closed_by_limit_total",
         "Connections closed because a budget of input or output was used up."),
        ("broken_frames", "pybookie_broken_frames_total", "Frames that violated the protocol."),
        ("unreadable_v3", "pybookie_unreadable_v3_total",
         "Frames that began like a V3 request but were malformed, or nested too deeply."),
        ("inline_commits", "pybookie_inline_commits_total", "Journal groups of a single add, written by an I/O loop."),
        ("upgrades", "pybookie_tls_upgrades_total", "Connections that switched to TLS."),
        ("tls_handshakes", "pybookie_tls_handshakes_total", "TLS handshakes that succeeded."),
        ("tls_handshakes_failed", "pybookie_tls_handshakes_failed_total",
         "TLS handshakes that failed, took too long or were too many."),
        ("policy_served", "pybookie_policy_requests_total", "Requests answered by Python."),
        ("policy_refused", "pybookie_policy_requests_refused_total",
         "Requests refused because too many waited for Python."),
        ("long_polls", "pybookie_long_polls_total", "Long polls that had to wait."),
        ("long_polls_notified", "pybookie_long_polls_notified_total", "Long polls answered because the LAC rose."),
        ("long_polls_expired", "pybookie_long_polls_expired_total", "Long polls that timed out."),
        ("long_polls_cancelled", "pybookie_long_polls_cancelled_total",
         "Long polls cancelled because their connection was closed."),
        ("long_polls_refused", "pybookie_long_polls_refused_total", "Long polls refused because too many waited."),
    ),
    *gauges(
        ("sanity", "bookie_SERVER_SANITY", "Result of the last sanity test: 1 passed, 0 failed, -1 none yet."),
        ("adds_in_progress", "bookkeeper_server_ADD_ENTRY_IN_PROGRESS", "Adds that wait for their journal."),
        ("reads_in_progress", "bookkeeper_server_READ_ENTRY_IN_PROGRESS", "Reads that wait for the disk."),
        ("connections_stalled", "bookkeeper_server_ADD_ENTRY_BLOCKED",
         "Connections whose next add waits for space, or whose requests are held back."),
        ("connections", "pybookie_connections", "Open connections."),
        ("connected_addresses", "pybookie_connected_addresses", "Addresses with an open connection."),
        ("long_polls_waiting", "pybookie_long_polls_waiting", "Long polls that wait now."),
        ("output_buffer_bytes", "pybookie_output_buffer_bytes", "Memory of unsent responses."),
        ("input_buffer_bytes", "pybookie_input_buffer_bytes", "Memory of requests that are incomplete or wait."),
        ("policy_queued", "pybookie_policy_queue_requests", "Requests that wait for Python."),
        ("policy_queued_bytes", "pybookie_policy_queue_bytes", "Memory of requests that wait for Python."),
        ("auth_sessions", "pybookie_authentication_sessions", "Connections that are authenticating."),
    ),
)  # fmt: skip


def refusals(stats: Mapping[str, float]) -> Iterator[Family]:
    """Yield the refused requests, by status."""
    samples = tuple(Sample(stats.get(f"errors_{at}", 0), (("status", word),)) for at, word in STATUS_WORDS.items())
    yield Family("pybookie_answers_refused_total", Kind.COUNTER, "Responses with an error, by status.", samples)


def turned_away(stats: Mapping[str, float]) -> Iterator[Family]:
    """Yield the peers turned away, by reason."""
    samples = tuple(
        Sample(stats.get(f"turned_away_{at}", 0), (("reason", word),)) for at, word in enumerate(REASON_WORDS)
    )
    text = "Peers turned away, by reason; `pybookie_authentication_rejected_total` counts those with wrong credentials."
    yield Family("pybookie_peers_turned_away_total", Kind.COUNTER, text, samples)


def users(counts: Sequence[UserCounts], stats: Mapping[str, float]) -> Iterator[Family]:
    """Yield the counts by user; `nobody` stands for unauthenticated connections. A revoked user is gone."""
    strangers = max(0, int(stats.get("connections", 0)) - sum(one.connections for one in counts))
    nobody = UserCounts(NOBODY, strangers, 0, int(stats.get("refused_unauthenticated", 0)))
    for kind, name, text in (
        (Kind.GAUGE, "connections", "Open connections by user."),
        (Kind.COUNTER, "logins", "Logins by user."),
        (Kind.COUNTER, "refused", "Requests refused because the user lacks the right, by user."),
    ):
        samples = tuple(Sample(getattr(one, name), (("user", one.name),)) for one in (nobody, *counts))
        yield Family(f"pybookie_user_{name}" + "_total" * (kind is Kind.COUNTER), kind, text, samples)


def thread_pool(stats: Mapping[str, float]) -> Iterator[Family]:
    """Yield the counts of the threads that read from disk, which share one queue."""
    labels = (("thread", "read"), ("threadPool", "BookieReadThreadPool"))
    for stat, what, text in (
        ("read_pool_queued", "queue", "Reads that wait for a thread."),
        ("read_pool_served", "completed", "Reads that threads completed."),
        ("read_pool_served", "tasks_completed", "Reads that threads completed."),
        ("refused_reads", "tasks_rejected", "Reads refused because too many waited."),
    ):
        yield Family(
            f"bookkeeper_server_thread_executor_{what}", Kind.GAUGE, text, (Sample(stats.get(stat, 0), labels),)
        )
