"""Routing, authorization and the common headers of all responses. An ASGI application on the event loop of the plane.

Nothing here blocks: endpoints run on `RequestThreads`, except probes, which only look at memory. `bookie_admin.roles`
has the role that each path needs; the files of the console need none. If the configuration names no tokens, processes
of the bookie's own user and of root may do everything over the loopback address, because they could read its own token
anyway. A page of another site can make a browser send requests here; `hosts` refuses them.
"""

import asyncio
import logging
from collections.abc import Mapping

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from bookie.errors import BookKeeperError, IllegalOperation, MetadataStoreError, NoSuchLedgerMetadata, RequestTimeout
from bookie.metadata.key_value.keys import StoreFull
from bookie.server.control import Control
from bookie_admin.access import Access, Caller, NotAuthenticated, RoleMissing, audit
from bookie_admin.auditing import of_http
from bookie_admin.http.files import File
from bookie_admin.http.hosts import Hosts, check_origin
from bookie_admin.http.moving import Movers
from bookie_admin.http.request import HttpRequest, Parameters, Refused, Reply, reply_text, told
from bookie_admin.http.routes import ROUTES, Answer
from bookie_admin.http.threads import RequestThreads
from bookie_admin.neighbours import is_ours
from bookie_admin.roles import Role

__all__ = ["Application"]

BODY_BYTES_MAX = 64 * 1024
QUERY_BYTES_MAX = 4096
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
PROBER = Caller("anybody", Role.METRICS)
"""The caller of probes, which need no credentials."""
UNKNOWN = Caller("unknown", Role.METRICS)
STATUS_OF: dict[type[BookKeeperError], int] = {
    IllegalOperation: 400,
    NoSuchLedgerMetadata: 404,
    StoreFull: 500,
    MetadataStoreError: 503,
    RequestTimeout: 504,
}
"""All other errors are answered with 500."""
STOPPING = "the bookie is stopping, and did not wait for this request"
log = logging.getLogger(__name__)


class Application:
    """The ASGI application of the HTTP port. Until `open` it answers only probes, while a start waits for the metadata
    store or replays journals.

    Args:
        control: the bookie.
        access: its access rules until `open`, which are those of the configuration.
        movers: the decommissions started through this port.
        files: the files of the console, by path.
    """

    def __init__(self, control: Control, access: Access, movers: Movers, files: Mapping[str, File]) -> None:
        self._control = control
        self._access = access
        self._movers = movers
        self._files = files
        self._threads = RequestThreads(control.http.threads)
        self._hosts = Hosts(control.http, control.names)
        self._timeout_s = control.http.request_timeout_ms / 1000
        self._opened = False

    def open(self, access: Access) -> None:
        """Answer all requests from now on, by these access rules."""
        self._access = access
        self._opened = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        request = Request(scope, receive)
        headers = dict(HEADERS)
        try:
            reply = await self._reply(request, headers)
        except Refused as refused:
            reply = reply_text(str(refused), refused.status)
        except NotAuthenticated as error:
            headers["www-authenticate"] = 'Bearer realm="bookie"'
            reply = reply_text(f"{error}; send it as `authorization: Bearer TOKEN`", 401)
        except RoleMissing as error:
            reply = reply_text(str(error), 403)
        except ClientDisconnect:
            return
        except asyncio.CancelledError:  # while it was received
            reply = reply_text(f"{STOPPING}; nothing was done", 503)
        except Exception:
            log.exception("an HTTP endpoint failed", extra={"path": request.url.path})
            reply = reply_text("the request failed; the bookie's log has the reason", 500)
        headers.setdefault("cache-control", "no-store")
        headers["content-type"] = reply.content_type
        body = b"" if reply.status == 304 else reply.body
        response = Response(body, reply.status, headers)
        if request.method == "HEAD":
            response.body = b""
        await response(scope, receive, send)

    def close(self) -> None:
        """Accept no further calls."""
        self._threads.close()

    async def _reply(self, request: Request, headers: dict[str, str]) -> Reply:
        path, method = request.url.path, "GET" if request.method == "HEAD" else request.method
        self._hosts.check(request.headers.get("host"))
        if len(request.url.query) > QUERY_BYTES_MAX:
            raise Refused(414, f"the query is longer than {QUERY_BYTES_MAX} bytes")
        if not self._opened and not _is_probe(path, method):
            raise Refused(503, f"{told(self._control)}; until it serves, only probes are answered")
        file = self._files.get(path)
        if file is not None and method == "GET":
            headers |= {"cache-control": "no-cache", "etag": file.tag}
            known = request.headers.get("if-none-match") == file.tag
            return Reply(file.content, file.content_type, 304 if known else 200)
        answers = ROUTES.get(path)
        if answers is None:
            raise Refused(404, f"unknown path {path[:200]}; docs/http.md lists the paths")
        answer = answers.get(method)
        if answer is None:
            headers["allow"] = ", ".join(answers)
            return self._other_method(path, answers)
        if answer.need.role is None:
            return answer.endpoint(self._http_request(request, PROBER, b""))  # reads no body and waits for no thread
        if answer.need.role >= Role.OPERATE:
            check_origin(method, request.headers)
        caller = self._caller(request, answer.need.role)
        body = await _body(request)
        self._require(request, caller, answer.need.of(Parameters(request.query_params, body)) or Role.ADMIN)
        return await self._ask(request, answer, caller, body)

    def _caller(self, request: Request, role: Role) -> Caller:
        """Identify the caller and check its role.

        Raises:
            NotAuthenticated: the credentials are missing or unknown.
            RoleMissing: the caller's role is too low.
        """
        authorization = request.headers.get("authorization")
        if not (self._access.guarded or authorization) and _is_ours(request):
            return Caller("local", Role.ADMIN)
        try:
            caller = self._access.caller(authorization, request.scope["state"]["subjects"])
        except NotAuthenticated:
            self._tell_refused(request, UNKNOWN, role)
            raise
        self._require(request, caller, role)
        return caller

    def _require(self, request: Request, caller: Caller, role: Role) -> None:
        try:
            self._access.require(caller, role)
        except (NotAuthenticated, RoleMissing):
            self._tell_refused(request, caller, role)
            raise

    @staticmethod
    def _tell_refused(request: Request, caller: Caller, role: Role) -> None:
        """Write a refused change to the audit log."""
        if role >= Role.OPERATE:
            audit(caller, _peer(request), f"{request.method} {request.url.path}", "refused")

    def _http_request(self, request: Request, caller: Caller, body: bytes) -> HttpRequest:
        return HttpRequest(
            control=self._control,
            movers=self._movers,
            access_guarded=self._access.guarded,
            method=request.method,
            params=dict(request.query_params),
            body=body,
            accept=request.headers.get("accept", ""),
            caller=caller,
            timeout_s=self._timeout_s,
        )

    async def _ask(self, request: Request, answer: Answer, caller: Caller, body: bytes) -> Reply:
        try:
            given = self._http_request(request, caller, body)
            reply = await self._threads.run(answer.endpoint, given, asks_store=answer.asks_store)
        except Refused as refused:
            reply = reply_text(str(refused), refused.status)
        except asyncio.CancelledError:  # its thread goes on until what it waits for is closed
            reply = reply_text(f"{STOPPING}; whether it had an effect is not known", 503)
        except BookKeeperError as error:
            status = next((STATUS_OF[kind] for kind in type(error).__mro__ if kind in STATUS_OF), 500)
            reply = reply_text(str(error), status)
        if answer.need.role is not None and answer.need.role >= Role.OPERATE:
            path, done = request.url.path, reply.status < 400
            described = of_http(path, request.query_params, body, done=done)
            facts = {"request": described, "status": reply.status}
            audit(caller, _peer(request), f"{request.method} {path}", "done" if done else "failed", **facts)
        return reply

    @staticmethod
    def _other_method(path: str, answers: Mapping[str, Answer]) -> Reply:
        """Reply to a method that the path does not have. Like Apache BookKeeper, reply with 404 for all but three
        paths.
        """
        if path == "/metrics":
            return reply_text("forbidden. Should be GET method", 403)
        status = 405 if path in ("/api/v1/bookie/gc", "/api/v1/bookie/entry_location_compact") else 404
        return reply_text(f"Not found method. Should be {' or '.join(answers)} method", status)


def _is_probe(path: str, method: str) -> bool:
    answer = ROUTES.get(path, {}).get(method)
    return answer is not None and answer.need.role is None


def _is_ours(request: Request) -> bool:
    peer, here = request.client, request.scope.get("server")
    return peer is not None and here is not None and is_ours((peer.host, peer.port), (here[0], here[1]))


async def _body(request: Request) -> bytes:
    """Return the body of a request.

    Raises:
        Refused: it is too long (413).
    """
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > BODY_BYTES_MAX:
            raise Refused(413, f"the body is longer than {BODY_BYTES_MAX} bytes")
        parts.append(part)
    return b"".join(parts)


def _peer(request: Request) -> str:
    return f"{request.client.host}:{request.client.port}" if request.client else "unknown"
