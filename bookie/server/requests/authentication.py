"""AUTH: the messages of connections that are not authenticated yet, in V2 and V3, handed to the configured provider.

Who was let in is a user of module `server.users` from then on, one for each name and credential.

Any policy thread; the messages of one connection come one after another, and its end after the last of them. What a
peer sent never reaches the log.
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
"""Of one connection; every known mechanism needs four at most."""
OTHER_PLUGIN_MAX = 3
"""Messages of one connection for a plugin that is not configured; the last one costs it."""
USERS_MAX = 2000
"""Names that are counted each by itself; those of an installed provider have no end."""
OTHERS = "others"
V2_HEADER_BYTES = 4

log = logging.getLogger(__name__)


class UserCounts(NamedTuple):
    """Of all who come by one name."""

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
    """Sessions by connection; a session ends with its connection's authentication or its socket."""

    def __init__(self, provider: ServerProvider) -> None:
        self._provider = provider
        self.rejections = RefusedLogins()
        self._open: dict[int, _Open] = {}
        self._lock = threading.Lock()
        self._users: dict[str | bytes, _User] = {}  # guarded by _lock; by credential, or by name where there is none
        self._refused: dict[str, int] = {}  # told so far, by name; of the thread that tells
        self.accepted = 0
        self.rejected = 0
        self.other_plugin = 0

    def sessions(self) -> int:
        """Connections in the middle of their authentication."""
        return len(self._open)

    def refresh(self) -> bool:
        """Let the provider look at its files; True: connections of those whom it does not know any more are to end."""
        provider = self._provider
        if not isinstance(provider, RereadProvider) or not provider.refresh():
            return False
        with self._lock:
            gone = {key: user for key, user in self._users.items() if not provider.knows(user.outcome)}
            for key, user in gone.items():
                user.entry.revoke()
                del self._users[key]
        for user in gone.values():
            log.warning("its connections end: what let it in was taken back", extra={"user": user.name})
        return bool(gone)

    def users(self) -> list[UserCounts]:
        """Who was let in, by name."""
        found: dict[str, UserCounts] = {}
        with self._lock:
            for user in self._users.values():
                old, entry = found.get(user.name, UserCounts(user.name, 0, 0, 0)), user.entry
                counts = old.connections + entry.connections, old.logins + entry.logins, old.refused + entry.refused
                found[user.name] = UserCounts(user.name, *counts)
        return sorted(found.values())

    def tell(self) -> None:
        """One line for each user that was refused something since the last time. One thread."""
        found = {user.name: user.refused for user in self.users()}
        for name, refused in found.items():
            times = refused - self._refused.get(name, 0)
            if times > 0:
                log.warning(
                    "requests were refused: the user has no right to them", extra={"user": name, "times": times}
                )
        self._refused = found

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
        self._answer(task, b"", outcome)

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
        """V3 has a word for it: the client may try again, a few times."""
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
            raise AuthenticationFailed(f"no end after {MESSAGES_MAX} messages")
        outcome = found.session.process(token)
        if outcome.principal is not None and task.kind == policy.CLEAR and not self._provider.challenges:
            raise AuthenticationFailed("all that the client has to show came in clear, behind START_TLS")
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
        """Registered before it is looked at once more: a refresh finds it, or has changed what is known before.

        Beyond USERS_MAX many share one name. What may be taken back stays a user of its own even so: there are as
        many of those as the provider's files hold.
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
    """None: it is none, or not all of it is there."""
    try:
        message = wire.AuthMessage.FromString(frame[V2_HEADER_BYTES:])
    except DecodeError:
        return None
    return message if message.IsInitialized() else None  # parsing alone does not look for required fields


def _v2_header(header: bytes) -> bytes:
    """The answer's: version and opcode as sent, no flags. A header of version 0 is the opcode alone."""
    return header[:2] + b"\0\0" if header[0] else b"\0\0\0" + header[3:]
