"""The examples under conf/ for systemd, containers and Kubernetes name what this version has, and tools that are made
for them accept them. `make deployment` installs these tools; without it, their tests skip.
"""

import configparser
import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from bookie.server.configuration.loader import load
from bookie.server.main import main as bookie_server

ROOT = Path(__file__).resolve().parent.parent
KUBERNETES = ("1.29", "latest")
TLS = {"tls": {"secret": "bookie-tls", "required": True}}
CHANGED = {
    **TLS,
    "bookies": 5,
    "image": {"repository": "registry.example/bookie", "tag": "1"},
    "metadata": {"uri": "zk+hierarchical://zk1:2181;zk2:2181/ledgers", "initialize": False},
    "storage": {"journal": {"size": "50Gi", "class": "fast"}},
    "autoRecovery": False,
    "config": {"gcWaitTime": 1800000, "diskUsageThreshold": 0.9, "httpServerAllowedHosts": "*.example"},
}
HELM = pytest.mark.leaks(
    "Helm's library runs Go, whose threads and their descriptors stay as long as the process lives"
)


def tool(name: str) -> Any:
    """Import a module of `make deployment`, or skip the test; fail where it was asked for."""
    if os.environ.get("BOOKIE_REQUIRE_DEPLOYMENT") == "1":
        return importlib.import_module(name)
    return pytest.importorskip(name, reason="not installed: make deployment")


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


def manifests() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((ROOT / "conf/kubernetes/bookie.yaml").read_text()))


def pods_of(documents: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what the StatefulSet among the documents says about its pods."""
    (pods,) = (one["spec"]["template"]["spec"] for one in documents if one["kind"] == "StatefulSet")
    assert isinstance(pods, dict)
    return pods


def environment_of(pods: dict[str, Any]) -> dict[str, str]:
    """Return the environment of the bookie in the first pod."""
    (bookie,) = pods["containers"]
    return {one["name"]: one["value"].replace("$(POD_NAME)", "bookie-0") for one in bookie["env"] if "value" in one}


def test_the_containers() -> None:
    """compose.yaml and the StatefulSet give each bookie what conf/container.conf leaves to them."""
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text())
    bookies = [one for name, one in compose["services"].items() if name.startswith("bookie-")]
    assert len(bookies) == 3
    for one in bookies:
        loads(one["environment"])
        assert set(one["volumes"][0].split(":")[:1]) <= set(compose["volumes"])
    pods = pods_of(manifests())
    (bookie,) = pods["containers"]
    loads(environment_of(pods))
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


def test_hadolint_accepts_the_dockerfile() -> None:
    """Without a warning or a remark."""
    command = Path(sys.executable).with_name("hadolint")
    if not command.exists() and os.environ.get("BOOKIE_REQUIRE_DEPLOYMENT") != "1":
        pytest.skip("not installed: make deployment")
    done = subprocess.run([command, "--no-color", ROOT / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def validate(documents: list[dict[str, Any]], version: str) -> None:
    """Validate documents against the schemas of a version of Kubernetes; unknown fields are errors."""
    kubernetes = tool("kubernetes_validate")
    for one in documents:
        kubernetes.validate(one, kubernetes.latest_version() if version == "latest" else version, strict=True)


@pytest.mark.parametrize("version", KUBERNETES)
def test_kubernetes_accepts_the_manifests(version: str) -> None:
    """Every field is one of the schema; a misspelt one is found."""
    documents = manifests()
    assert {one["kind"] for one in documents} == {"Service", "PodDisruptionBudget", "StatefulSet"}
    validate(documents, version)
    pods_of(documents)["containers"][0]["readynessProbe"] = {}
    with pytest.raises(tool("kubernetes_validate").ValidationError, match="readynessProbe"):
        validate(documents, version)


def rendered(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the documents that Helm makes of the chart with these values, as a release named `demo`."""
    with tool("helm_python").Chart.load(str(ROOT / "conf/helm")) as chart:
        chart.validate_schema(chart.merge_values(values))
        texts = chart.render(values, name="demo", namespace="prod").values()
    return [document for text in texts for document in yaml.safe_load_all(text) if document]


@HELM
@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize("values", [{}, TLS, CHANGED], ids=["defaults", "tls", "changed"])
def test_the_chart(values: dict[str, Any], version: str) -> None:
    """Kubernetes accepts what Helm makes of it, and a bookie accepts the environment."""
    documents = rendered(values)
    validate(documents, version)
    loads(environment_of(pods_of(documents)))


@HELM
def test_the_chart_is_the_manifest() -> None:
    """With the default values it makes the same pods, apart from names and labels, the image, and auto-recovery."""
    ours, charts = pods_of(manifests()), pods_of(rendered({}))
    environments = environment_of(ours), environment_of(charts)
    assert environments[1].pop("BK_autoRecoveryDaemonEnabled") == "true"
    assert environments[1].pop("BK_advertisedAddress") == "bookie-0.demo"
    assert environments[0].pop("BK_advertisedAddress") == "bookie-0.bookie"
    assert environments[0] == environments[1]
    for pods in (ours, charts):
        del pods["affinity"]
        for container in (*pods["containers"], *pods["initContainers"]):
            del container["env"], container["image"]
            container.pop("imagePullPolicy", None)
            for probe in (value["httpGet"] for key, value in container.items() if key.endswith("Probe")):
                assert probe.pop("scheme", "HTTP") == "HTTP"
    assert charts == ours


@HELM
def test_values_of_the_chart() -> None:
    """Each value arrives where it belongs; numbers keep their digits; unknown values are refused."""
    documents = rendered(CHANGED)
    (stateful,) = (one for one in documents if one["kind"] == "StatefulSet")
    pods = pods_of(documents)
    assert stateful["spec"]["replicas"] == 5
    journal, ledgers = (claim["spec"] for claim in stateful["spec"]["volumeClaimTemplates"])
    assert (journal["storageClassName"], journal["resources"]["requests"]["storage"]) == ("fast", "50Gi")
    assert ("storageClassName" in ledgers, ledgers["resources"]["requests"]["storage"]) == (False, "200Gi")
    assert "initContainers" not in pods
    assert pods["containers"][0]["image"] == "registry.example/bookie:1"
    assert {volume["name"]: volume["secret"]["defaultMode"] for volume in pods["volumes"]} == {
        "tokens": 0o440,
        "tls": 0o440,
    }
    environment = environment_of(pods)
    names = ("gcWaitTime", "diskUsageThreshold", "httpServerAllowedHosts", "autoRecoveryDaemonEnabled", "tlsRequired")
    assert [environment[f"BK_{name}"] for name in names] == ["1800000", "0.9", "*.example", "false", "true"]
    settings = load(ROOT / "conf/container.conf", environment).settings
    assert settings.storage.ledger_directories == (Path("/ledgers"),)
    helm = tool("helm_python")
    for wrong in ({"bookeis": 3}, {"bookies": 0}, {"metadata": {"uri": "zk1:2181"}}, {"adminTokens": {"secret": ""}}):
        with pytest.raises(helm.HelmValuesError):
            rendered(wrong)
