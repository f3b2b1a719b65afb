"""AUTH: the messages of connections that are not authenticated yet, in V2 and V3, which the configured provider
processes.

An authenticated client is a user of module `server.users` from then on, one for each name and credential.

Any policy thread; the messages of one connection are processed one after another, and its end after the last of
them. Nothing that a peer sent is logged.
"""

import logging
import threading
from dataclasses import dataclass
from typing import NamedTuple

from google.protobuf.message import DecodeError

from bookie._fast.server import policy
from bookie._fast.server.policy import Task
from bookie._fast.server.users import AuthenticatedUser
from bookie.auth.provider import AuthenticationFailed, Outcome, RereadProvider, ServerProvider, ServerSession
from bookie.pb import wire_pb2 as wire
from bookie.server.requests import replies
from bookie.server.requests.refused_logins import RefusedLogins

__all__ = ["Authentication", "UserCounts"]

MESSAGES_MAX = 16
"""The most messages of one connection; every known mechanism needs at most four."""
OTHER_PLUGIN_MAX = 3
"""The most messages of one connection for a plugin that is not configured; the last one closes it."""
USERS_MAX = 2000
"""The most names that are counted individually; an installed provider may have any number."""
OTHERS = "others"
V2_HEADER_BYTES = 4

log = logging.getLogger(__name__)


class UserCounts(NamedTuple):
    """The counts of all clients with one name."""

    name: str
    connections: int
    logins: int
    refused: int


@dataclass(slots=True)
class _Open:
    session: ServerSession
    messages: int = 0
    other_plugin: int = 0


@dataclass(frozen=True, slots=True)
class _User:
    name: str
    outcome: Outcome
    entry: AuthenticatedUser


class Authentication:
    """Sessions by connection. A session ends when its connection is authenticated or closed."""

    def __init__(self, provider: ServerProvider) -> None:
        self._provider = provider
        self.rejections = RefusedLogins()
        self._open: dict[int, _Open] = {}
        self._lock = threading.Lock()
        self._users: dict[str | bytes, _User] = {}  # guarded by _lock; by credential, or by name if there is none
        self._refused: dict[str, int] = {}  # reported so far, by name; only the thread that calls `tell` uses it
        self.accepted = 0
        self.rejected = 0
        self.other_plugin = 0

    def sessions(self) -> int:
        """Return the number of connections in the middle of their authentication."""
        return len(self._open)

    def refresh(self) -> bool:
        """Let the provider read its files again; return whether connections of unknown users must be closed."""
        provider = self._provider
        if not isinstance(provider, RereadProvider) or not provider.refresh():
            return False
        with self._lock:
            gone = {key: user for key, user in self._users.items() if not provider.knows(user.outcome)}
            for key, user in gone.items():
                user.entry.revoke()
                del self._users[key]
        for user in gone.values():
            log.warning(
                "connections of a user are closed, because it was removed or changed", extra={"user": user.name}
            )
        return bool(gone)

    def users(self) -> list[UserCounts]:
        """Return the counts of authenticated users, by name."""
        found: dict[str, UserCounts] = {}
        with self._lock:
            for user in self._users.values():
                old, entry = found.get(user.name, UserCounts(user.name, 0, 0, 0)), user.entry
                counts = old.connections + entry.connections, old.logins + entry.logins, old.refused + entry.refused
                found[user.name] = UserCounts(user.name, *counts)
        return sorted(found.values())

    def tell(self) -> None:
        """Log one line for each user whose requests were refused since the last call. One thread."""
        found = {user.name: user.refused for user in self.users()}
        for name, refused in found.items():
            times = refused - self._refused.get(name, 0)
            if times > 0:
                log.warning(
                    "requests were refused, because the user lacks the right", extra={"user": name, "times": times}
                )
        self._refused = found

    def ended(self, task: Task) -> None:
        """Forget the session of a connection that is gone."""
        self._open.pop(task.session, None)

    def upgraded(self, task: Task) -> None:
        """Handle a connection that is encrypted now; the frame is the client's certificate, or empty.

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
        self._answer(task, b"", outcome)

    def serve(self, task: Task) -> None:
        """Process one AUTH message."""
        if task.protocol == 2:
            self._serve_v2(task)
        else:
            self._serve_v3(task)

    def _serve_v2(self, task: Task) -> None:
        """Process a message of V2. Anything wrong closes the connection, because V2 has no code for it."""
        header, message = task.frame[:V2_HEADER_BYTES], _v2_message(task.frame)
        if message is None or message.authPluginName != self._provider.plugin_name:
            self._reject(task, "the message is malformed or for another plugin")
            self.other_plugin += message is not None
            task.answer(b"", policy.CLOSE if message is None else policy.TURN_AWAY)
            return
        try:
            outcome = self._process(task, message.payload)
        except AuthenticationFailed as error:
            self._reject(task, str(error))
            task.answer(b"", policy.CLOSE)
            return
        if outcome.token is None:
            self._answer(task, b"", outcome)
            return
        answer = wire.AuthMessage(authPluginName=message.authPluginName, payload=outcome.token)
        self._answer(task, _v2_header(header) + answer.SerializeToString(), outcome)

    def _serve_v3(self, task: Task) -> None:
        request = wire.Request.FromString(task.frame)
        if request.authRequest.authPluginName != self._provider.plugin_name:
            task.answer(replies.copied(request, replies.EUA), self._other_plugin(task))
            return
        try:
            outcome = self._process(task, request.authRequest.payload)
        except AuthenticationFailed as error:
            self._reject(task, str(error))
            task.answer(replies.copied(request, replies.EUA), policy.CLOSE)
            return
        if outcome.token is None:
            self._answer(task, b"", outcome)
            return
        message = wire.AuthMessage(authPluginName=self._provider.plugin_name, payload=outcome.token)
        self._answer(task, replies.copied(request, replies.EOK, authResponse=message), outcome)

    def _other_plugin(self, task: Task) -> int:
        """Count a message for another plugin. V3 has a code for it, so the client may try again a few times."""
        self.other_plugin += 1
        found = self._session(task)
        found.other_plugin += 1
        if found.other_plugin < OTHER_PLUGIN_MAX:
            self.rejections.about(task.peer, "not authenticated: the message is for another plugin")
            return policy.NOTHING
        self._reject(task, "the message is for another plugin")
        return policy.TURN_AWAY

    def _session(self, task: Task) -> _Open:
        found = self._open.get(task.session)
        if found is None:
            found = self._open[task.session] = _Open(self._provider.session(task.peer))
        return found

    def _process(self, task: Task, token: bytes) -> Outcome:
        found = self._session(task)
        found.messages += 1
        if found.messages > MESSAGES_MAX:
            raise AuthenticationFailed(f"the authentication was not complete after {MESSAGES_MAX} messages")
        outcome = found.session.process(token)
        if outcome.principal is not None and task.kind == policy.CLEAR and not self._provider.challenges:
            raise AuthenticationFailed("the client sent its only proof in clear, after START_TLS")
        return outcome

    def _answer(self, task: Task, body: bytes, outcome: Outcome) -> None:
        if outcome.principal is None:
            task.answer(body, policy.NOTHING)
            return
        self._open.pop(task.session, None)
        self.accepted += 1
        log.debug("authenticated", extra={"peer": task.peer, "principal": outcome.principal})
        task.answer(body, policy.AUTHENTICATED, self._user(outcome.principal, outcome), int(outcome.rights))

    def _user(self, name: str, outcome: Outcome) -> AuthenticatedUser:
        """Register a user. It is registered before the provider is asked again, so that a concurrent refresh either
        finds it or has already changed what the provider knows.

        Beyond USERS_MAX, many users share one name. Users that may be revoked are still kept separately: there are
        only as many as the provider's files contain.
        """
        provider = self._provider
        reread = provider if isinstance(provider, RereadProvider) else None
        key: str | bytes = outcome.credential or name
        with self._lock:
            found = self._users.get(key)
            if found is None and len(self._users) >= USERS_MAX:
                name = OTHERS
                if reread is None:
                    key, found = OTHERS, self._users.get(OTHERS)
            elif found is not None and found.name == OTHERS:
                name = OTHERS
            entry = found.entry if found else AuthenticatedUser()
            self._users[key] = _User(name, outcome, entry)
            if reread is not None and not reread.knows(outcome):
                entry.revoke()
                del self._users[key]
        return entry

    def _reject(self, task: Task, why: str) -> None:
        self._open.pop(task.session, None)
        self.rejected += 1
        self.rejections.about(task.peer, f"not authenticated: {why}")


def _v2_message(frame: bytes) -> wire.AuthMessage | None:
    """Parse the message; return None if it is malformed or incomplete."""
    try:
        message = wire.AuthMessage.FromString(frame[V2_HEADER_BYTES:])
    except DecodeError:
        return None
    return message if message.IsInitialized() else None  # parsing alone does not check for required fields


def _v2_header(header: bytes) -> bytes:
    """Return the response header: version and opcode as sent, no flags. That of version 0 is the opcode alone."""
    return header[:2] + b"\0\0" if header[0] else b"\0\0\0" + header[3:]
