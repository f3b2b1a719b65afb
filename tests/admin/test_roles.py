"""The table of the role that each call needs: it is complete, matches the documentation, and real ports enforce it."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import descriptor_pool, message_factory
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from bookie.errors import MetadataStoreError, SecurityError
from bookie.metadata import open_driver
from bookie.metadata.key_value.driver import COOKIES, INSTANCE, LEDGERS
from bookie.pb import (
    bookie_service_pb2,
    garbage_service_pb2,
    metadata_service_pb2,
    metrics_service_pb2,
    scrub_service_pb2,
    stored_service_pb2,
)
from bookie_admin.http.routes import ENDPOINTS
from bookie_admin.roles import METHODS, ROUTES, Need, Role, needed_by_method, needed_by_route
from tests.admin.http.conftest import Port
from tests.fixtures.bookies import BookieProcess

pytestmark = pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives")

FILES = (
    bookie_service_pb2, garbage_service_pb2, metadata_service_pb2, metrics_service_pb2, scrub_service_pb2,
    stored_service_pb2, health_pb2, reflection_pb2,
)  # fmt: skip
PAGE = Path(__file__).resolve().parents[2] / "docs/admin.md"
CALL_S = 60.0
TOKENS = {role: f"{role.word}-{'x' * 20}" for role in Role}


def services() -> Iterator[Any]:
    """Return the descriptors of all services of the port."""
    for file in FILES:
        yield from file.DESCRIPTOR.services_by_name.values()


def test_each_method_and_each_route_stands_in_the_table() -> None:
    """A call that is missing from the table needs the highest role; this test makes sure that none is missing."""
    assert set(METHODS) == {f"{one.full_name}/{method.name}" for one in services() for method in one.methods}
    assert set(ROUTES) == {(method, path) for path, answers in ENDPOINTS.items() for method in answers}
    assert needed_by_method("/bookie.admin.v1.Bookie/Another").role is Role.ADMIN
    assert needed_by_route("PUT", "/api/another").role is Role.ADMIN


def test_the_page_has_the_same_table() -> None:
    """docs/admin.md has the same rows: the role, and when a higher one is needed."""

    def cells(need: Need) -> tuple[str, str]:
        more = f"`{need.more.word}`: {need.where}" if need.more is not None else ""
        return f"`{need.role.word}`" if need.role is not None else "none", more

    wanted = {f"`{name}`": cells(need) for name, need in METHODS.items()}
    wanted |= {f"`{method} {path}`": cells(need) for (method, path), need in ROUTES.items()}
    rows = re.findall(r"^\| (`[^|]*/[^|]*`) \| ([^|]*) \| ([^|]*)\|$", PAGE.read_text(), re.MULTILINE)
    assert {name.strip(): (role.strip(), more.strip()) for name, role, more in rows} == wanted


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BookieProcess]:
    """A bookie with a token of each role."""
    directory = tmp_path_factory.mktemp("roles")
    file = directory / "tokens"
    file.write_text("".join(f"{role.word}:{role.word}:{token}\n" for role, token in TOKENS.items()))
    file.chmod(0o600)
    settings = {"adminTokensFile": str(file), "httpServerEnabled": "true", "httpServerPort": "0"}
    bookie = BookieProcess(directory / "bookie", f"lmdb://{directory}/metadata", settings).start()
    yield bookie
    assert bookie.stop() == 0


def code(bookie: BookieProcess, method: str, request: Any, role: Role | None) -> str:
    """Return the status code of a call, or of the first response of a stream."""
    metadata = [("authorization", f"Bearer {TOKENS[role]}")] if role else []
    call = _method(method)
    with grpc.insecure_channel(bookie.admin) as channel:
        kind = channel.unary_stream if call.server_streaming else channel.unary_unary
        ask = kind(f"/{method}", type(request).SerializeToString, _class(call.output_type).FromString)
        try:
            answer = ask(request, timeout=CALL_S, metadata=metadata)
            if call.server_streaming:
                next(answer, None)
                answer.cancel()
        except grpc.RpcError as error:
            return str(error.code().name)
    return "OK"


def _method(name: str) -> Any:
    return descriptor_pool.Default().FindMethodByName(name.replace("/", "."))


def _class(descriptor: Any) -> Any:
    return message_factory.GetMessageClass(descriptor)


UNARY = sorted(one for one in METHODS if "reflection" not in one and not one.endswith(("Health/List", "SetReadOnly")))
PASSED = {"OK", "INVALID_ARGUMENT", "NOT_FOUND", "FAILED_PRECONDITION"}


@pytest.mark.parametrize("method", UNARY)
def test_grpc_wants_the_role_of_the_table(guarded: BookieProcess, method: str) -> None:
    """Calls without a token, with the next lower role, and with the required role."""
    request, needed = _class(_method(method).input_type)(), METHODS[method].role
    nobody = code(guarded, method, request, None)
    if needed is None:
        assert nobody in PASSED
        return
    assert nobody == "UNAUTHENTICATED"
    if needed > Role.METRICS:
        assert code(guarded, method, request, Role(needed - 1)) == "PERMISSION_DENIED"
    assert code(guarded, method, request, needed) in PASSED


def test_some_requests_need_more(guarded: BookieProcess) -> None:
    """The stored value of a ledger needs write; cookies, the cluster's key and mass deletions need admin."""
    pb, store = metadata_service_pb2, "bookie.metadata.v1.MetadataStore"
    force = garbage_service_pb2.ForceGarbageRequest(mass_deletion=True)
    for method, request, needed in (
        (f"{store}/Get", pb.GetRequest(key=f"{LEDGERS}0"), Role.OPERATE),
        (f"{store}/Delete", pb.DeleteRequest(key=f"{COOKIES}nobody"), Role.ADMIN),
        (f"{store}/Delete", pb.DeleteRequest(key=INSTANCE, expected=77), Role.ADMIN),
        (f"{store}/Put", pb.PutRequest(key=INSTANCE, expected=77), Role.ADMIN),
        ("bookie.admin.v1.GarbageCollection/Force", force, Role.ADMIN),
    ):
        assert code(guarded, method, request, Role(needed - 1)) == "PERMISSION_DENIED", method
        assert code(guarded, method, request, needed) in PASSED | {"ABORTED"}, method
    audited = [line for line in guarded.log_text().splitlines() if "MetadataStore/Delete" in line]
    assert len(audited) == 4
    assert "key: 14 characters" in audited[0]  # refused: no part of the value is returned


@pytest.mark.parametrize("route", sorted(ROUTES), ids=" ".join)
def test_http_wants_the_role_of_the_table(guarded: BookieProcess, route: tuple[str, str]) -> None:
    """The same over HTTP. Changes are tested with requests that have no effect."""
    address, needed = guarded.planes["http"], ROUTES[route].role
    harmless = {"readOnly": False, "enabled": "x"}
    if needed is None:
        assert Port(address).ask(*route).status == 200
        return
    assert Port(address).ask(*route, harmless if route[0] == "PUT" else None).status == 401
    if needed > Role.METRICS:
        assert Port(address, TOKENS[Role(needed - 1)]).ask(*route).status == 403
    assert Port(address, TOKENS[needed]).ask(*route, harmless if route[0] == "PUT" else None).status not in (401, 403)


def test_http_requests_that_need_more(guarded: BookieProcess) -> None:
    """Custom metadata are values of ledgers; deleting a cookie needs the role admin, also if the body is not JSON."""
    address = guarded.planes["http"]
    reader, data = (Port(address, TOKENS[role]) for role in (Role.READ, Role.READ_DATA))
    assert reader.get("/api/v1/ledger/list").status == 200
    assert reader.get("/api/v1/ledger/list?print_metadata=true").status == 403
    assert data.get("/api/v1/ledger/list?print_metadata=true").status == 200
    operator, admin = (Port(address, TOKENS[role]) for role in (Role.OPERATE, Role.ADMIN))
    path = "/api/v1/autorecovery/decommission"
    assert operator.put(path, {"bookie_src": "gone:1"}).status == 400
    for body in ({"bookie_src": "gone:1", "delete_cookie": "true"}, {"delete_cookie": True}, b"{"):
        assert operator.put(path, body).status == 403, body
        assert admin.put(path, body).status in (400, 404), body


def test_a_client_of_the_store_needs_what_it_does(guarded: BookieProcess, tmp_path: Path) -> None:
    """With `operate` a program registers, writes and deletes ledgers; with `read` it reads, without a session."""

    def driver(role: Role) -> Any:
        file = tmp_path / role.word
        file.write_text(TOKENS[role])
        file.chmod(0o600)
        return open_driver(f"grpc://{guarded.admin}?token={file}")

    for role in (Role.READ, Role.OPERATE, Role.ADMIN):
        one = driver(role)
        one.start()
        assert guarded.id in one.bookies.present(read_only=False)
        one.stop()
    metrics = driver(Role.METRICS)
    metrics.start()
    with pytest.raises(SecurityError, match="has the role metrics, but this needs read"):
        metrics.bookies.present(read_only=False)
    metrics.stop()


@pytest.mark.thorough
def test_sessions_have_limits(bookies: Callable[..., list[BookieProcess]]) -> None:
    """There are limits in total and per address, whose error names the key; a session that ends frees its place."""
    for key in ("metadataSessionsMax", "metadataSessionsPerPeerMax"):
        (bookie,) = bookies(1, **{key: "2"})
        held = [open_driver(f"grpc://{bookie.admin}") for _ in range(3)]
        held[0].start()
        held[1].start()
        with pytest.raises(
            MetadataStoreError, match=f"2 sessions.* are open already \\({key}=2\\); close some, or raise it"
        ):
            held[2].start()
        held[0].stop()
        third = open_driver(f"grpc://{bookie.admin}")
        third.start()
        third.stop()
        held[1].stop()
        assert bookie.stop() == 0
