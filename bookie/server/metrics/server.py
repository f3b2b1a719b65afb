"""Metrics of the data port: requests, connections, and the loops behind them."""

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
         "Adds refused because an I/O loop had too many without an answer."),
        ("refused_reads", "bookkeeper_server_READ_ENTRY_REJECTED",
         "Reads refused because too many waited for the disk."),
        ("bytes_in", "pybookie_received_bytes_total", "Bytes received by the data port."),
        ("bytes_out", "pybookie_sent_bytes_total", "Bytes sent by the data port."),
        ("read_bytes", "bookie_READ_BYTES", "Bytes of entries answered to reads."),
        ("stalls", "bookie_throttled_write_requests",
         "Adds that waited for room in the write cache or the journal."),
        ("stalls_refused", "bookie_rejected_write_requests", "Of these adds, those refused in the end."),
        ("read_entries", "pybookie_read_entries_total", "Entries answered to reads, single and batched."),
        ("deferred_adds", "pybookie_deferred_adds_total", "Adds acknowledged before their sync, as they asked."),
        ("write_closes", "pybookie_write_closes_total", "Announcements that a ledger's end has been written."),
        ("forces", "bookie_BOOKIE_FORCE_LEDGER", "Requests to force a ledger to disk."),
        ("polled_absent", "bookkeeper_server_READ_LAST_ENTRY_NOENTRY_ERROR",
         "Entries that a long poll asked for and that are not here."),
        ("fences", "pybookie_fences_total", "Reads that fence a ledger."),
        ("auths", "pybookie_authentication_messages_total", "Authentication messages received."),
        ("auth_accepted", "pybookie_authentication_accepted_total", "Connections let in by what they showed."),
        ("auth_rejected", "pybookie_authentication_rejected_total",
         "Connections closed because what they showed was wrong."),
        ("auth_other_plugin", "pybookie_authentication_other_plugin_total",
         "Authentication messages for a plugin that is not configured."),
        ("refused_rights", "pybookie_requests_without_right_total",
         "Requests refused because who asks has no right to them."),
        ("refused_unauthenticated", "pybookie_requests_unauthenticated_total",
         "Requests refused because their connection was not authenticated."),
        ("accepted", "pybookie_connections_accepted_total", "Connections accepted."),
        ("refused", "pybookie_connections_refused_total", "Connections refused because there were too many."),
        ("refused_address", "pybookie_connections_refused_by_address_total",
         "Connections refused because their address had too many."),
        ("refused_by_connection", "pybookie_requests_refused_by_connection_total",
         "Requests refused because their connection had too many without an answer."),
        ("refused_urgent", "pybookie_urgent_requests_refused_total",
         "Fencing reads and requests of high priority refused because even their share of room was used up."),
        ("held_back", "pybookie_connections_held_back_total",
         "Times that a connection was not read because too many of its requests had no answer."),
        ("choked", "pybookie_connections_choked_total",
         "Times that a connection was not read because too much of its answers lay unsent, or waited for the disk."),
        ("closed_unauthenticated", "pybookie_connections_closed_unauthenticated_total",
         "Connections closed because they did not authenticate in time."),
        ("closed_idle", "pybookie_connections_closed_idle_total", "Connections closed because they were idle."),
        ("closed_by_limit", "pybookie_connections_closed_by_limit_total",
         "Connections closed because a budget of input or output was used up."),
        ("broken_frames", "pybookie_broken_frames_total", "Frames that broke the rules of the protocol."),
        ("unreadable_v3", "pybookie_unreadable_v3_total",
         "Frames that began as a V3 request and were none: malformed, or nested too deeply."),
        ("inline_commits", "pybookie_inline_commits_total", "Journal groups of a lone add, written by an I/O loop."),
        ("upgrades", "pybookie_tls_upgrades_total", "Connections that went on to TLS."),
        ("tls_handshakes", "pybookie_tls_handshakes_total", "TLS handshakes that came to a good end."),
        ("tls_handshakes_failed", "pybookie_tls_handshakes_failed_total",
         "TLS handshakes that failed, took too long or were too many."),
        ("policy_served", "pybookie_policy_requests_total", "Requests answered by Python."),
        ("policy_refused", "pybookie_policy_requests_refused_total",
         "Requests refused because too many waited for Python."),
        ("long_polls", "pybookie_long_polls_total", "Long polls that had to wait."),
        ("long_polls_notified", "pybookie_long_polls_notified_total", "Long polls answered because the LAC rose."),
        ("long_polls_expired", "pybookie_long_polls_expired_total", "Long polls answered because their time was over."),
        ("long_polls_cancelled", "pybookie_long_polls_cancelled_total",
         "Long polls given up because their connection closed."),
        ("long_polls_refused", "pybookie_long_polls_refused_total", "Long polls refused because too many waited."),
    ),
    *gauges(
        ("sanity", "bookie_SERVER_SANITY", "The last sanity test: 1 passed, 0 failed, -1 there was none."),
        ("adds_in_progress", "bookkeeper_server_ADD_ENTRY_IN_PROGRESS", "Adds that wait for their journal."),
        ("reads_in_progress", "bookkeeper_server_READ_ENTRY_IN_PROGRESS", "Reads that wait for the disk."),
        ("connections_stalled", "bookkeeper_server_ADD_ENTRY_BLOCKED",
         "Connections whose next add waits for room, or whose requests are held back."),
        ("connections", "pybookie_connections", "Open connections."),
        ("connected_addresses", "pybookie_connected_addresses", "Addresses with an open connection."),
        ("long_polls_waiting", "pybookie_long_polls_waiting", "Long polls that wait now."),
        ("output_buffer_bytes", "pybookie_output_buffer_bytes", "Memory of answers that are not sent yet."),
        ("input_buffer_bytes", "pybookie_input_buffer_bytes", "Memory of requests that are not whole yet or wait."),
        ("policy_queued", "pybookie_policy_queue_requests", "Requests that wait for Python."),
        ("policy_queued_bytes", "pybookie_policy_queue_bytes", "Memory of requests that wait for Python."),
        ("auth_sessions", "pybookie_authentication_sessions", "Connections in the middle of authenticating."),
    ),
)  # fmt: skip


def refusals(stats: Mapping[str, float]) -> Iterator[Family]:
    """Answers by what they say."""
    samples = tuple(Sample(stats.get(f"errors_{at}", 0), (("status", word),)) for at, word in STATUS_WORDS.items())
    yield Family("pybookie_answers_refused_total", Kind.COUNTER, "Answers that are not what was asked for.", samples)


def turned_away(stats: Mapping[str, float]) -> Iterator[Family]:
    """Peers by what for."""
    samples = tuple(
        Sample(stats.get(f"turned_away_{at}", 0), (("reason", word),)) for at, word in enumerate(REASON_WORDS)
    )
    text = "Peers turned away, by what for; those with wrong credentials are `pybookie_authentication_rejected_total`."
    yield Family("pybookie_peers_turned_away_total", Kind.COUNTER, text, samples)


def users(counts: Sequence[UserCounts], stats: Mapping[str, float]) -> Iterator[Family]:
    """Who was let in, by name, and `nobody` for those who were not, or need not be; one that is taken back is gone."""
    strangers = max(0, int(stats.get("connections", 0)) - sum(one.connections for one in counts))
    nobody = UserCounts(NOBODY, strangers, 0, int(stats.get("refused_unauthenticated", 0)))
    for kind, name, text in (
        (Kind.GAUGE, "connections", "Open connections by who was let in."),
        (Kind.COUNTER, "logins", "Logins by who was let in."),
        (Kind.COUNTER, "refused", "Requests that were refused because who asks has no right to them."),
    ):
        samples = tuple(Sample(getattr(one, name), (("user", one.name),)) for one in (nobody, *counts))
        yield Family(f"pybookie_user_{name}" + "_total" * (kind is Kind.COUNTER), kind, text, samples)


def thread_pool(stats: Mapping[str, float]) -> Iterator[Family]:
    """The threads that read from disk share one queue."""
    labels = (("thread", "read"), ("threadPool", "BookieReadThreadPool"))
    for stat, what, text in (
        ("read_pool_queued", "queue", "Reads that wait for a thread."),
        ("read_pool_served", "completed", "Reads that threads have served."),
        ("read_pool_served", "tasks_completed", "Reads that threads have served."),
        ("refused_reads", "tasks_rejected", "Reads refused because too many waited."),
    ):
        yield Family(
            f"bookkeeper_server_thread_executor_{what}", Kind.GAUGE, text, (Sample(stats.get(stat, 0), labels),)
        )
