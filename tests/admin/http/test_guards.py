"""Access over HTTP: roles, pages of other sites, foreign host names, silent connections, and costs when disabled."""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn

from bookie.client import BookKeeper
from bookie.errors import StartRefused
from bookie.server.configuration.loader import load
from bookie.server.configuration.settings import AccessSettings, HttpSettings
from bookie_admin.http import open_plane
from tests.admin.http.conftest import Cluster, Port

pytestmark = pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives")

PAGE = Path(__file__).resolve().parents[3] / "docs/http.md"
MIB = 1 << 20
READ, OPERATE = "reading-0123456789", "operating-0123456789"


def test_roles_and_the_audit(cluster_of: Callable[..., Cluster], tmp_path: Path) -> None:
    """Tokens are required to read, a reader changes nothing, probes stay open, and each change is audited."""
    tokens = tmp_path / "tokens"
    tokens.write_text(f"read:viewer:{READ}\noperate:anna:{OPERATE}\n")
    tokens.chmod(0o600)
    cluster = cluster_of(adminTokensFile=str(tokens))
    bookie = cluster.bookies[0]
    nobody, wrong, reader, operator = (Port(bookie.planes["http"], token) for token in ("", "x" * 20, READ, OPERATE))
    for port in (nobody, wrong):
        answer = port.get("/api/v1/bookie/state")
        assert answer.status == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert port.get("/metrics").status == 401
        assert port.put("/api/v1/bookie/state/readonly", {"readOnly": True}).status == 401
    for path in ("/heartbeat", "/livez", "/healthz", "/readyz", "/api/v1/bookie/is_ready", "/"):
        assert nobody.get(path).status == 200, path
    assert reader.get("/api/v1/bookie/state").status == 200
    assert reader.get("/metrics").status == 200
    assert reader.put("/api/v1/bookie/state/readonly", {"readOnly": True}).status == 403
    assert operator.put("/api/v1/bookie/state/readonly", {"readOnly": False}).status == 200
    log = bookie.log_text()
    assert "token:viewer" in log
    assert "token:anna" in log
    assert "PUT /api/v1/bookie/state/readonly" in log
    assert READ not in log
    assert OPERATE not in log
    shown = reader.get("/api/v1/config/server_config").text
    assert OPERATE not in shown


@pytest.mark.thorough
def test_the_command_of_the_page(cluster_of: Callable[..., Cluster], tmp_path: Path) -> None:
    """The shell command in docs/http.md works; without its token it is refused."""
    (line,) = re.findall(r"^    (curl .*)$", PAGE.read_text(), re.MULTILINE)
    if shutil.which("curl") is None:
        pytest.skip("there is no curl on this machine")
    tokens = tmp_path / "tokens"
    tokens.write_text(f"operate:anna:{OPERATE}\n")
    tokens.chmod(0o600)
    bookie = cluster_of(adminTokensFile=str(tokens)).bookies[0]
    assert "127.0.0.1:8080" in line
    command = line.replace("127.0.0.1:8080", bookie.planes["http"])
    refused, metric_lines = (
        subprocess.check_output(["sh", "-c", command], env={**os.environ, "TOKEN": token}, stderr=subprocess.DEVNULL)
        for token in ("wrong", OPERATE)
    )
    assert b"the caller is unknown" in refused
    assert json.loads(metric_lines) == {"readOnly": True}
    assert Port(bookie.planes["http"], OPERATE).get("/api/v1/bookie/state/readonly").json == {"readOnly": True}


def test_other_sites_change_nothing(cluster_of: Callable[..., Cluster]) -> None:
    """A page of another site makes an operator's browser send requests here. Neither they nor a name that was pointed
    at our address get through, and no response allows another origin to read it.
    """
    port = cluster_of().port
    path, body = "/api/v1/bookie/state/readonly", {"readOnly": False}
    host = f"127.0.0.1:{port.address[1]}"
    for headers in (
        {"origin": "http://evil.example"}, {"sec_fetch_site": "cross-site"}, {"sec_fetch_site": "same-site"},
        {"origin": "null"},
    ):  # fmt: skip
        answer = port.ask("PUT", path, body, **headers)
        assert answer.status == 403, headers
        assert "access-control-allow-origin" not in answer.headers
    assert port.ask("PUT", path, body, origin=f"http://{host}", sec_fetch_site="same-origin").status == 200
    assert port.ask("GET", "/api/v1/bookie/state", host="evil.example").status == 421
    assert port.ask("GET", "/api/v1/bookie/state", host="10.0.0.1:80").status == 421
    assert port.ask("GET", "/api/v1/bookie/state", host=f"localhost:{port.address[1]}").status == 200
    assert port.ask("OPTIONS", path, origin="http://evil.example").status == 404


def test_the_console_is_served_under_a_strict_policy(cluster_of: Callable[..., Cluster]) -> None:
    """It loads nothing from elsewhere and has no inline code; a browser revalidates its files."""
    port = cluster_of().port
    page = port.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'; script-src 'self'" in page.headers["content-security-policy"]
    assert "unsafe" not in page.headers["content-security-policy"]
    assert b"<script>" not in page.body
    assert b"style=" not in page.body
    script = port.get("/console/app.js")
    assert script.headers["content-type"].startswith("text/javascript")
    assert port.ask("GET", "/console/app.js", if_none_match=script.headers["etag"]).status == 304


@pytest.mark.thorough
def test_silent_connections_keep_nobody_out(cluster_of: Callable[..., Cluster]) -> None:
    """With as many silent connections as the port accepts, probes are refused at once, and served when these end."""
    port = cluster_of().port
    silent = [socket.create_connection(port.address) for _ in range(300)]
    try:
        assert port.get("/livez").status in (200, 503)
    finally:
        for one in silent:
            one.close()
    while port.get("/livez").status != 200:
        pass


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    """The bookie does not start without its port; an address that others can reach requires access control."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        plane = open_plane(_control(taken.getsockname()[1]))
        assert plane is not None
        with pytest.raises(StartRefused, match="httpServerPort="):
            plane.start()
        plane.stop(0)
    conf = tmp_path / "bk.conf"
    conf.write_text(
        "metadataServiceUri=lmdb:///x\njournalDirectories=/j\nledgerDirectories=/l\nhttpServerEnabled=true\n"
        "httpServerHost=0.0.0.0\n"
    )
    with pytest.raises(StartRefused, match=r"httpServerHost=0\.0\.0\.0"):
        load(conf, {})
    assert load(conf, {"BK_adminInsecureAllowed": "true"}).settings.http.host == "0.0.0.0"  # noqa: S104
    with pytest.raises(StartRefused, match="httpServerTlsEnable=true"):
        load(conf, {"BK_httpServerTlsEnable": "true", "BK_httpServerHost": "127.0.0.1"})


def test_a_server_that_cannot_begin_refuses_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the port and the reason; nothing of the server remains."""

    async def startup(_self: uvicorn.Server, sockets: object = None) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(uvicorn.Server, "startup", startup)
    plane = open_plane(_control(0))
    assert plane is not None
    with pytest.raises(StartRefused, match=r"httpServerPort=0: .*Too many open files"):
        plane.start()
    plane.stop(0)


def test_nothing_of_it_is_loaded_where_it_is_off() -> None:
    """If the port is disabled, the entry point imports neither the server nor the framework, to keep starts fast."""
    program = "import sys, bookie_admin.http; print({m.split('.')[0] for m in sys.modules} & {'uvicorn', 'starlette'})"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "set()"


def _control(port: int) -> Any:
    http = HttpSettings(enabled=True, port=port)
    return SimpleNamespace(http=http, access=AccessSettings(), metadata=None, own_token=None, names=())


@pytest.mark.thorough
def test_answers_that_nobody_takes_have_a_budget(cluster_of: Callable[..., Cluster]) -> None:
    """Forty peers request 8 MiB each and read nothing: the longest waiting one is closed, well before its deadline."""
    cluster = cluster_of(httpServerMaxOutputMemorySizeMb="16", httpServerSendTimeoutMs="600000", httpServerThreads="2")
    with (
        BookKeeper(cluster.uri) as bk,
        bk.create_ledger(ensemble_size=1, write_quorum_size=1, ack_quorum_size=1, password=b"") as ledger,
    ):
        for _ in range(8):
            ledger.append(b"x" * MIB)
    path = f"/api/v1/ledger/read?ledger_id={ledger.id}"
    assert len(cluster.port.get(path).body) > 8 * MIB
    with contextlib.ExitStack() as stack:
        for _ in range(40):
            sock = stack.enter_context(socket.socket())
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.connect(cluster.port.address)
            sock.sendall(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
        name = 'pybookie_port_peers_turned_away_total{port="http",reason="slow_reader"}'
        deadline = time.monotonic() + 60
        while not any(float(line.split()[-1]) >= 37 for line in metric_lines(cluster.port) if line.startswith(name)):
            assert time.monotonic() < deadline


def metric_lines(port: Port) -> list[str]:
    """Read all metrics."""
    return port.get("/metrics").text.splitlines()
