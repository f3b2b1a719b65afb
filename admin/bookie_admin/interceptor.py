"""What every gRPC call at the admin port passes: authorization, limits, the audit log, and mapping errors to statuses.

Callers without a known token have threads, waiting calls and streams of their own, so that they cannot take those of
known callers. Refusals, when all threads are busy, come from a thread of their own. `bookie_admin.roles` has the role
that each call needs. Calls that change something are written to the audit log.
"""

import contextlib
import logging
import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import grpc

from bookie.admin_port.channel import BUSY, TOLD
from bookie.errors import (
    BookKeeperError,
    DataUnknown,
    DigestMismatch,
    IllegalOperation,
    IncorrectParameter,
    MetadataStoreError,
    NoSuchEntry,
    NoSuchLedger,
    NoSuchLedgerMetadata,
    RequestTimeout,
    UnauthorizedAccess,
)
from bookie.metadata.key_value.keys import KeyAbsent, KeyExists, SessionExpired, StoreFull, VersionConflict
from bookie.server.configuration.errors import one_line
from bookie_admin.access import Access, Caller, NotAuthenticated, RoleMissing, audit
from bookie_admin.auditing import of_message
from bookie_admin.private_socket import peer_named
from bookie_admin.roles import Role, needed_by_method

__all__ = ["CallInterceptor", "Share", "WorkPool"]

UNAUDITED = ("/bookie.metadata.v1.MetadataStore/",)
"""Services whose changes are not audited: bookies and clients write there all the time, and the store keeps the
version of each write. Calls that need the role `admin` are audited there too.
"""
LIMITED_THERE = ("/bookie.metadata.v1.MetadataStore/",)
"""Services whose streams have a limit of their own, so that operators who watch cannot keep bookies from their
metadata.
"""
STATUS_OF: dict[type[BookKeeperError], grpc.StatusCode] = {
    NotAuthenticated: grpc.StatusCode.UNAUTHENTICATED,
    RoleMissing: grpc.StatusCode.PERMISSION_DENIED,
    IncorrectParameter: grpc.StatusCode.INVALID_ARGUMENT,
    IllegalOperation: grpc.StatusCode.FAILED_PRECONDITION,
    NoSuchLedger: grpc.StatusCode.NOT_FOUND,
    NoSuchLedgerMetadata: grpc.StatusCode.NOT_FOUND,
    NoSuchEntry: grpc.StatusCode.NOT_FOUND,
    RequestTimeout: grpc.StatusCode.DEADLINE_EXCEEDED,
    UnauthorizedAccess: grpc.StatusCode.FAILED_PRECONDITION,
    DigestMismatch: grpc.StatusCode.DATA_LOSS,
    DataUnknown: grpc.StatusCode.DATA_LOSS,
    KeyAbsent: grpc.StatusCode.NOT_FOUND,
    KeyExists: grpc.StatusCode.ALREADY_EXISTS,
    VersionConflict: grpc.StatusCode.ABORTED,
    SessionExpired: grpc.StatusCode.FAILED_PRECONDITION,
    StoreFull: grpc.StatusCode.RESOURCE_EXHAUSTED,
    MetadataStoreError: grpc.StatusCode.UNAVAILABLE,
}
HANDLERS: dict[tuple[bool, bool], tuple[str, Callable[..., Any]]] = {
    (False, False): ("unary_unary", grpc.unary_unary_rpc_method_handler),
    (False, True): ("unary_stream", grpc.unary_stream_rpc_method_handler),
    (True, False): ("stream_unary", grpc.stream_unary_rpc_method_handler),
    (True, True): ("stream_stream", grpc.stream_stream_rpc_method_handler),
}
log = logging.getLogger(__name__)


class WorkPool(ThreadPoolExecutor):
    """A thread pool that counts the calls waiting for a thread."""

    def __init__(self, threads: int) -> None:
        super().__init__(threads, thread_name_prefix="admin")
        self._lock = threading.Lock()
        self.waiting = 0  # changed under _lock; read without it

    def submit(self, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Submit a call and count it as waiting until a thread runs it."""

        def begun() -> Any:
            self._count(-1)
            return call(*args, **kwargs)

        self._count(1)
        try:
            return super().submit(begun)
        except RuntimeError:  # the pool was shut down in the meantime
            self._count(-1)
            raise

    def _count(self, change: int) -> None:
        with self._lock:
            self.waiting += change


class Share:
    """The share of the port that a group of callers has: threads, calls waiting for a thread, and streams, each of
    which occupies one.
    """

    def __init__(self, *, calls: int, waiting_max: int, streams_max: int, others: int = 0) -> None:
        self.pool = WorkPool(calls + streams_max + others)
        self.waiting_max = waiting_max
        self.streams_max = streams_max
        self._streams = threading.BoundedSemaphore(streams_max)

    @contextlib.contextmanager
    def stream(self, context: grpc.ServicerContext) -> Generator[None, None, None]:
        """Count a stream while the block runs; abort the call if there are too many."""
        if not self._streams.acquire(blocking=False):
            text = f"all {self.streams_max} streams of this admin port are in use; end some of them and retry"
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, text)
        try:
            yield
        finally:
            self._streams.release()


class CallInterceptor(grpc.ServerInterceptor):  # type: ignore[misc]  # gRPC ships no types
    """The interceptor of the gRPC server. `close` ends its own thread; idempotent."""

    def __init__(self, access: Access, known: Share, strangers: Share) -> None:
        self._access = access
        self._known = known
        self._strangers = strangers
        self._refusals = ThreadPoolExecutor(1, thread_name_prefix="admin-refusals")

    def close(self) -> None:
        """End the thread for refusals, after the server has stopped."""
        self._refusals.shutdown()

    def intercept_service(self, continuation: Callable[[Any], Any], details: Any) -> Any:
        """Wrap the handler of a method, or replace it by a refusal if too many calls wait. Runs on gRPC's own
        thread.
        """
        handler = continuation(details)
        if handler is None:
            return None
        name, make = HANDLERS[handler.request_streaming, handler.response_streaming]
        header = next((value for key, value in details.invocation_metadata if key == "authorization"), None)
        share = self._known if self._access.is_known(header) else self._strangers
        if share.pool.waiting >= share.waiting_max:
            behaviour = self._refuse(share.waiting_max)
        else:
            behaviour = self._wrap(
                str(details.method), header, getattr(handler, name), share, streams=handler.response_streaming
            )
            behaviour.experimental_thread_pool = share.pool  # type: ignore[attr-defined]
        return make(behaviour, handler.request_deserializer, handler.response_serializer)

    def _refuse(self, waiting_max: int) -> Callable[..., Any]:
        def refuse(_request: Any, context: grpc.ServicerContext) -> Any:
            context.set_trailing_metadata((BUSY,))
            context.abort(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                f"{waiting_max} calls are already waiting at this admin port; retry later, or call less often",
            )

        refuse.experimental_thread_pool = self._refusals  # type: ignore[attr-defined]
        return refuse

    def _wrap(
        self, method: str, header: str | None, behaviour: Callable[..., Any], share: Share, *, streams: bool
    ) -> Callable[..., Any]:
        def call(request: Any, context: grpc.ServicerContext) -> Any:
            caller = self._admit(method, header, request, context)
            if caller is None:
                return behaviour(request, context)
            outcome = "done"
            try:
                return behaviour(request, context)
            except Exception as error:
                known = isinstance(error, (BookKeeperError, OSError))  # its text may repeat what was sent
                outcome = f"failed: {type(error).__name__}" if known else "failed"
                raise
            finally:
                described = of_message(_short(method), request, done=outcome == "done")
                audit(caller, peer_named(context.peer()), _short(method), outcome, request=described)

        def stream(request: Any, context: grpc.ServicerContext) -> Generator[Any, None, None]:
            self._admit(method, header, request, context)
            if method.startswith(LIMITED_THERE):
                yield from behaviour(request, context)
                return
            with share.stream(context):
                yield from behaviour(request, context)

        def call_reporting_errors(request: Any, context: grpc.ServicerContext) -> Any:
            return _reporting_errors(lambda: call(request, context), context, method)

        def stream_reporting_errors(request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
            answers = stream(request, context)
            try:
                while (answer := _reporting_errors(lambda: next(answers, None), context, method)) is not None:
                    yield answer
            finally:
                answers.close()

        return stream_reporting_errors if streams else call_reporting_errors

    def _admit(self, method: str, header: str | None, request: Any, context: grpc.ServicerContext) -> Caller | None:
        """Authorize a call; return the caller if the call must be audited, else None.

        Raises:
            NotAuthenticated: the credentials are missing or unknown.
            RoleMissing: the caller's role is too low.
        """
        if not context.is_active():
            context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "the caller has given up")
        needed = needed_by_method(method).of(request)
        if needed is None:
            return None
        audited = needed >= Role.OPERATE and not (needed < Role.ADMIN and method.startswith(UNAUDITED))
        caller = Caller("unknown", Role.METRICS)
        try:
            caller = self._access.caller(header, _subjects(context))
            self._access.require(caller, needed)
        except (NotAuthenticated, RoleMissing):
            if audited:
                described = of_message(_short(method), request, done=False)
                audit(caller, peer_named(context.peer()), _short(method), "refused", request=described)
            raise
        return caller if audited else None


def _reporting_errors(call: Callable[[], Any], context: grpc.ServicerContext, method: str) -> Any:
    """Make the call; turn an exception into a gRPC status with one line of text."""
    try:
        return call()
    except BookKeeperError as error:
        code = next((STATUS_OF[kind] for kind in type(error).__mro__ if kind in STATUS_OF), grpc.StatusCode.INTERNAL)
        if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
            context.set_trailing_metadata((TOLD,))
        context.abort(code, one_line(error))
    except OSError as error:
        log.error("a call at the admin port failed", extra={"method": method, "error": one_line(error)})
        context.abort(grpc.StatusCode.INTERNAL, f"{one_line(error)}; check the bookie's log and disks")


def _subjects(context: grpc.ServicerContext) -> list[str]:
    """Return the names in the client's certificate, which TLS has verified."""
    shown = context.auth_context()
    names = (*shown.get("x509_common_name", ()), *shown.get("x509_subject_alternative_name", ()))
    return [name.decode("utf-8", "replace") for name in names]


def _short(method: str) -> str:
    return method.rpartition(".")[2]
