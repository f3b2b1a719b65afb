"""The threads that answer requests in Python: they wait in the compiled module `server.policy`, work, and return the
job.

`run` is the body of each thread. The threads end when the queue is stopped, which happens after the I/O loops have
ended.
"""

import logging
from collections.abc import Callable, Mapping

from bookie._fast.server import policy
from bookie._fast.server.policy import PolicyRequests, Task
from bookie.log_throttle import LogThrottle
from bookie.pb import wire_pb2 as wire
from bookie.server.logs.rejections import Rejection
from bookie.server.requests import replies
from bookie.server.requests.authentication import Authentication, UserCounts

__all__ = ["Answer", "PolicyWorkers"]

Answer = Callable[[wire.Request], bytes]

log = logging.getLogger(__name__)
log.addFilter(LogThrottle())  # peers can cause these lines


class PolicyWorkers:
    """`answers` has a function for each operation; `authentication` is None if clients need not authenticate."""

    def __init__(
        self, queue: PolicyRequests, answers: Mapping[int, Answer], authentication: Authentication | None = None
    ) -> None:
        self.queue = queue
        self._answers = dict(answers)
        self._authentication = authentication

    def run(self, backlog: int) -> None:
        """Serve logins, or requests, until the queue is stopped and has none left."""
        while (task := self.queue.take(backlog)) is not None:
            try:
                self._serve(task)
            except Exception as error:  # noqa: BLE001 - its text may contain what a peer sent, so only the class is logged
                log.error("a request failed", extra={"operation": task.operation, "error": type(error).__name__})
                self._give_up(task)

    def _serve(self, task: Task) -> None:
        if task.kind == policy.CLOSED:
            if self._authentication:
                self._authentication.ended(task)
        elif task.kind in (policy.UPGRADED, policy.UPGRADED_KNOWN) and self._authentication:
            self._authentication.upgraded(task)
        elif task.operation == wire.AUTH and self._authentication:
            self._authentication.serve(task)
        else:
            request = wire.Request.FromString(task.frame)
            answer = self._answers.get(task.operation)
            body = answer(request) if answer else replies.answer(request, replies.EBADREQ)
            task.answer(body, policy.NOTHING)

    @staticmethod
    def _give_up(task: Task) -> None:
        """Close the connection, unless a response was sent before the failure."""
        if not task.answered:
            task.answer(b"", policy.CLOSE)

    def refused_logins(self) -> list[Rejection]:
        """Return the peers that failed to authenticate since the last call."""
        return self._authentication.rejections.drain() if self._authentication else []

    def stats(self) -> dict[str, int]:
        """Return counters and gauges."""
        who = self._authentication
        return {
            **self.queue.stats(),
            "auth_sessions": who.sessions() if who else 0,
            "auth_accepted": who.accepted if who else 0,
            "auth_rejected": who.rejected if who else 0,
            "auth_other_plugin": who.other_plugin if who else 0,
        }

    def users(self) -> list[UserCounts]:
        """Return the counts of authenticated users, by name."""
        return self._authentication.users() if self._authentication else []

    def tell(self) -> None:
        """Log users whose requests were refused since the last call."""
        if self._authentication:
            self._authentication.tell()

    def refresh(self) -> bool:
        """Read the files of the authentication again; return whether connections of some users must be closed."""
        return self._authentication.refresh() if self._authentication else False
