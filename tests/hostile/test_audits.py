"""Neither the audit nor other log lines contain what callers send: stored values, bodies, or arbitrary words."""

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor import FieldDescriptor

from bookie.admin_port.channel import AdminAccess, open_channel
from bookie.pb import bookie_service_pb2, metadata_service_pb2
from bookie_admin.auditing import NAMED, SHOWN, LineLimit, of_http, of_message
from bookie_admin.plane import AdminPlane
from bookie_admin.roles import METHODS, ROUTES, Role
from tests.admin.http.conftest import Port
from tests.fixtures.bookies import BookieProcess

pytestmark = pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives")

CANARY = "canary-6d1f0c"
CALL_S = 60.0
assert AdminPlane.__doc__  # importing it imports the messages of all services
TEXTS = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)


def filled(message: Any) -> Any:
    """Return the message with the canary in each field that can hold one, at any depth."""
    for field in message.DESCRIPTOR.fields:
        value: Any = CANARY.encode() if field.type == FieldDescriptor.TYPE_BYTES else CANARY
        if field.type in TEXTS and field.is_repeated:
            getattr(message, field.name).append(value)
        elif field.type in TEXTS:
            setattr(message, field.name, value)
        elif field.type == FieldDescriptor.TYPE_MESSAGE and not field.is_repeated:
            filled(getattr(message, field.name))
    return message


def ask(channel: Any, name: str) -> None:
    """Make one call with a canary in all its fields, whatever the result."""
    method = descriptor_pool.Default().FindMethodByName(name.replace("/", "."))
    request = filled(message_factory.GetMessageClass(method.input_type)())
    kind = channel.unary_stream if method.server_streaming else channel.unary_unary
    take = message_factory.GetMessageClass(method.output_type).FromString
    call = kind(f"/{name}", type(request).SerializeToString, take)
    try:
        answer = call(request, timeout=CALL_S)
        if method.server_streaming:
            next(answer, None)
            answer.cancel()
    except grpc.RpcError:
        pass


def test_no_line_of_the_log_holds_what_was_sent(bookies: Callable[..., list[BookieProcess]]) -> None:
    """With each method of each service and each route, called by a known and an unknown client, at the level
    `debug`, only names of fields and their sizes are audited.
    """
    (bookie,) = bookies(1, httpServerEnabled="true", httpServerPort="0")
    for channel in (open_channel(bookie.admin, AdminAccess()), grpc.insecure_channel(bookie.admin)):
        with channel:
            for name in METHODS:
                if "reflection" not in name:
                    ask(channel, name)
    known, unknown = Port(bookie.planes["http"]), Port(bookie.planes["http"], CANARY)
    body = {"bookie_src": CANARY, "delay_seconds": CANARY, "readOnly": CANARY, "forceMajor": CANARY, CANARY: CANARY}
    for method, path in ROUTES:
        for port in (known, unknown):
            for sent in (body, CANARY.encode(), {"bookie_src": [CANARY], "delete_cookie": CANARY}):
                port.ask(method, f"{path}?ledger_id={CANARY}&enabled={CANARY}&{CANARY}=1", sent)
    log = bookie.log_text()
    assert CANARY not in log
    audited = [line for line in log.splitlines() if "msg=audit" in line]
    orders = {name.rpartition(".")[2] for name, need in METHODS.items() if need.role == Role.OPERATE}
    orders = {one for one in orders if not one.startswith("MetadataStore")}
    orders |= {f"{method} {path}" for (method, path), need in ROUTES.items() if (need.role or 0) >= Role.OPERATE}
    assert {one for one in orders if any(one in line for line in audited)} == orders
    size = f"{len(CANARY)} characters"
    assert any("SetLogLevel" in line and f"logger: {size}, level: {size}" in line for line in audited)
    assert any("decommission" in line and f"bookie_src: {size}, other fields: 6" in line for line in audited)


@pytest.mark.thorough
def test_strangers_do_not_fill_the_log(bookies: Callable[..., list[BookieProcess]], tmp_path: Path) -> None:
    """However often an unknown client asks for a change, there are ten lines per second, and the number left out."""
    tokens = tmp_path / "tokens"
    tokens.write_text(f"operate:{'o' * 20}\n")
    tokens.chmod(0o600)
    (bookie,) = bookies(1, httpServerEnabled="true", httpServerPort="0", adminTokensFile=str(tokens))
    port = Port(bookie.planes["http"], "x" * 20)
    begun = time.monotonic()
    for _ in range(300):
        assert port.put("/api/v1/bookie/gc").status == 401
    seconds = time.monotonic() - begun
    lines = [line for line in bookie.log_text().splitlines() if "msg=audit" in line]
    assert 0 < len(lines) <= 10 * (seconds + 2)
    assert len(lines) + sum(int(one) for one in re.findall(r"left_out=(\d+)", bookie.log_text())) <= 300


def test_a_few_lines_a_second() -> None:
    """Lines that are left out are counted, and the next line has their number."""
    now = [0.5]
    few = LineLimit(2, lambda: now[0])
    assert [few.left_out() for _ in range(4)] == [0, 0, None, None]
    now[0] = 1.0
    assert [few.left_out() for _ in range(4)] == [2, 0, None, None]
    now[0] = 7.0
    assert few.left_out() == 2


def test_what_the_audit_shows() -> None:
    """Numbers and switches are always shown, words only if they are known names, and everything else by its size."""
    put = metadata_service_pb2.PutRequest(key="ledgers/1", value=b"password", expected=3)
    assert of_message("MetadataStore/Put", put, done=True) == "key: 9 characters, value: 8 bytes, expected: 3"
    level = bookie_service_pb2.SetLogLevelRequest(logger="bookie.server.mode", level="debug")
    assert of_message("Bookie/SetLogLevel", level, done=True) == 'logger: "bookie.server.mode", level: "debug"'
    assert of_message("Bookie/SetLogLevel", level, done=False) == "logger: 18 characters, level: 5 characters"
    closed = bookie_service_pb2.WriteCloseLedgersRequest(ledgers=range(20))
    assert of_message("Bookie/WriteClose", closed, done=True) == "ledgers: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …]"
    path, body = "/api/v1/autorecovery/decommission", json.dumps({"bookie_src": "gone:1", "other": 1}).encode()
    assert of_http(path, {}, body, done=True) == f'bookie_src: "gone:1", other fields: 1, body: {len(body)} bytes'
    assert of_http(path, {"x": "y"}, b"{", done=False) == "other fields: 1, body: 1 bytes"
    assert of_http("/api/v1/ledger/delete", {"ledger_id": "7"}, b"", done=True) == 'ledger_id: "7"'
    deep = b"[" * 100_000
    assert of_http(path, {}, deep, done=False) == f"body: {len(deep)} bytes"


def test_what_is_shown_is_a_field_of_that_request() -> None:
    """The lists name existing methods and routes, and fields of the right kind."""
    paths = {path for _, path in ROUTES}
    for listed, of_words in ((SHOWN, False), (NAMED, True)):
        for action, fields in listed.items():
            if action in paths:
                continue
            (name,) = (one for one in METHODS if one.rpartition(".")[2] == action)
            message = descriptor_pool.Default().FindMethodByName(name.replace("/", ".")).input_type
            for field in fields:
                assert (message.fields_by_name[field].type in TEXTS) == of_words, (action, field)
