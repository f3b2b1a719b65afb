"""AUTH: the messages of connections that are not authenticated yet, in V2 and V3, handed to the configured provider.

Any policy thread; the messages of one connection come one after another, and its end after the last of them. What a
peer sent never reaches the log.
"""

import logging
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from bookie._fast import policy
from bookie._fast.policy import Task
from bookie.auth.provider import AuthenticationFailed, Outcome, ServerProvider, ServerSession
from bookie.pb import wire_pb2 as wire
from bookie.server.requests import replies
from bookie.server.requests.rejections import Rejections

__all__ = ["Authentication"]

MESSAGES_MAX = 16
"""Of one connection; every known mechanism needs four at most."""
V2_HEADER_BYTES = 4

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Open:
    session: ServerSession
    messages: int = 0


class Authentication:
    """Sessions by connection; a session ends with its connection's authentication or its socket."""

    def __init__(self, provider: ServerProvider) -> None:
        self._provider = provider
        self.rejections = Rejections()
        self._open: dict[int, _Open] = {}
        self.accepted = 0
        self.rejected = 0

    def sessions(self) -> int:
        """Connections in the middle of their authentication."""
        return len(self._open)

    def ended(self, task: Task) -> None:
        """The connection of this session is gone."""
        self._open.pop(task.session, None)

    def upgraded(self, task: Task) -> None:
        """The connection is encrypted now; the frame is the client's certificate, empty without one.

        Apache BookKeeper's client asks for encryption and logs in at the same time: either may come first.
        """
        if task.kind == policy.UPGRADED_KNOWN and self._provider.challenges:
            task.answer(b"", policy.AUTHENTICATED)
            return
        try:
            outcome = self._session(task).session.upgraded(task.frame or None)
        except AuthenticationFailed as error:
            self._reject(task, str(error))
            task.answer(b"", policy.CLOSE)
            return
        if outcome.reason:
            self.rejections.about(task.peer, f"not authenticated: {outcome.reason}")
        task.answer(b"", self._action(task, outcome))

    def serve(self, task: Task) -> None:
        """One AUTH message."""
        if task.protocol == 2:
            self._serve_v2(task)
        else:
            self._serve_v3(task)

    def _serve_v2(self, task: Task) -> None:
        """Anything wrong costs the connection: V2 has no word for it."""
        header, message = task.frame[:V2_HEADER_BYTES], _v2_message(task.frame)
        if message is None or message.authPluginName != self._provider.plugin_name:
            self._reject(task, "the message is malformed or for another plugin")
            task.answer(b"", policy.CLOSE)
            return
        try:
            outcome = self._process(task, message.payload)
        except AuthenticationFailed as error:
            self._reject(task, str(error))
            task.answer(b"", policy.CLOSE)
            return
        if outcome.token is None:
            task.answer(b"", self._action(task, outcome))
            return
        answer = wire.AuthMessage(authPluginName=message.authPluginName, payload=outcome.token)
        task.answer(_v2_header(header) + answer.SerializeToString(), self._action(task, outcome))

    def _serve_v3(self, task: Task) -> None:
        request = wire.Request.FromString(task.frame)
        if request.authRequest.authPluginName != self._provider.plugin_name:
            self.rejections.about(task.peer, "not authenticated: the message is for another plugin")
            task.answer(replies.copied(request, replies.EUA), policy.NOTHING)
            return
        try:
            outcome = self._process(task, request.authRequest.payload)
        except AuthenticationFailed as error:
            self._reject(task, str(error))
            task.answer(replies.copied(request, replies.EUA), policy.CLOSE)
            return
        if outcome.token is None:
            task.answer(b"", self._action(task, outcome))
            return
        message = wire.AuthMessage(authPluginName=self._provider.plugin_name, payload=outcome.token)
        task.answer(replies.copied(request, replies.EOK, authResponse=message), self._action(task, outcome))

    def _session(self, task: Task) -> _Open:
        found = self._open.get(task.session)
        if found is None:
            found = self._open[task.session] = _Open(self._provider.session(task.peer))
        return found

    def _process(self, task: Task, token: bytes) -> Outcome:
        found = self._session(task)
        found.messages += 1
        if found.messages > MESSAGES_MAX:
            raise AuthenticationFailed(f"no end after {MESSAGES_MAX} messages")
        outcome = found.session.process(token)
        if outcome.principal is not None and task.kind == policy.CLEAR and not self._provider.challenges:
            raise AuthenticationFailed("all that the client has to show came in clear, behind START_TLS")
        return outcome

    def _action(self, task: Task, outcome: Outcome) -> int:
        if outcome.principal is None:
            return policy.NOTHING
        self._open.pop(task.session, None)
        self.accepted += 1
        log.debug("authenticated", extra={"peer": task.peer, "principal": outcome.principal})
        return policy.AUTHENTICATED

    def _reject(self, task: Task, why: str) -> None:
        self._open.pop(task.session, None)
        self.rejected += 1
        self.rejections.about(task.peer, f"not authenticated: {why}")


def _v2_message(frame: bytes) -> wire.AuthMessage | None:
    """None: it is none, or not all of it is there."""
    try:
        message = wire.AuthMessage.FromString(frame[V2_HEADER_BYTES:])
    except DecodeError:
        return None
    return message if message.IsInitialized() else None  # parsing alone does not look for required fields


def _v2_header(header: bytes) -> bytes:
    """The answer's: version and opcode as sent, no flags. A header of version 0 is the opcode alone."""
    return header[:2] + b"\0\0" if header[0] else b"\0\0\0" + header[3:]
