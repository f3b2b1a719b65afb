"""The examples under conf/ for systemd, containers and Kubernetes name what this version has."""

import configparser
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from bookie.server.configuration.loader import load
from bookie.server.main import main as bookie_server

ROOT = Path(__file__).resolve().parent.parent


def test_the_systemd_unit() -> None:
    """It is told when the bookie serves; a wrong configuration, exit code 1, is not tried again."""
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign] # keys keep their case
    unit.read(ROOT / "conf/systemd/bookie.service")
    service = unit["Service"]
    assert (service["Type"], service["RestartPreventExitStatus"]) == ("notify", "1")
    known = {option for parameter in bookie_server.params for option in parameter.opts}
    assert set(re.findall(r" (--[a-z-]+)", service["ExecStart"])) <= known


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd-analyze")
def test_the_systemd_unit_permits_little() -> None:
    """systemd rates the unit as "OK" or better: at most 4.0 of 10."""
    command = ["systemd-analyze", "security", "--offline=true", "--no-pager"]
    done = subprocess.run([*command, ROOT / "conf/systemd/bookie.service"], capture_output=True, text=True, check=False)
    if "--offline" in done.stderr:
        pytest.skip(f"this systemd is too old: {done.stderr}")
    exposure = re.search(r"exposure level for bookie.service: ([0-9.]+)", done.stdout)
    assert exposure, done.stderr
    assert float(exposure[1]) <= 4


def loads(environment: dict[str, str]) -> None:
    """A container with these variables gets a configuration; the directories are inside its volumes."""
    settings = load(ROOT / "conf/container.conf", environment).settings
    assert settings.storage.ledger_directories
    assert settings.metadata.service_uri.startswith("zk+")


def test_the_containers() -> None:
    """compose.yaml and the StatefulSet give each bookie what conf/container.conf leaves to them."""
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text())
    bookies = [one for name, one in compose["services"].items() if name.startswith("bookie-")]
    assert len(bookies) == 3
    for one in bookies:
        loads(one["environment"])
        assert set(one["volumes"][0].split(":")[:1]) <= set(compose["volumes"])
    documents: list[dict[str, Any]] = list(yaml.safe_load_all((ROOT / "conf/kubernetes/bookie.yaml").read_text()))
    (pods,) = (one["spec"]["template"]["spec"] for one in documents if one["kind"] == "StatefulSet")
    (bookie,) = pods["containers"]
    loads({one["name"]: one["value"].replace("$(POD_NAME)", "bookie-0") for one in bookie["env"] if "value" in one})
    probes = {name: bookie[name]["httpGet"]["path"] for name in ("startupProbe", "readinessProbe", "livenessProbe")}
    assert probes == {"startupProbe": "/livez", "readinessProbe": "/readyz", "livenessProbe": "/livez"}
    (secret,) = (one["secret"] for one in pods["volumes"] if one["name"] == "tokens")
    assert (
        secret["defaultMode"] == 0o440
    )  # as fsGroup needs it; the default, 644, is refused (tests/admin/test_access.py)
    monitor = yaml.safe_load((ROOT / "conf/kubernetes/service-monitor.yaml").read_text())
    assert monitor["spec"]["endpoints"][0]["port"] in {port["name"] for port in bookie["ports"]}


def test_the_image_runs_what_is_installed() -> None:
    """The Dockerfile copies a file that is there and starts the bookie's own command, without a shell."""
    text = (ROOT / "Dockerfile").read_text()
    (conf,) = re.findall(r"^COPY (\S+) /etc/bookie/bk.conf$", text, re.MULTILINE)
    assert (ROOT / conf).is_file()
    assert 'ENTRYPOINT ["bookie-server"]' in text
