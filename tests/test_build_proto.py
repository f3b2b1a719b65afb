"""Generated code follows proto/, is made only when something changed, and never half."""

import shutil
from pathlib import Path

import pytest

import build_proto

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of proto/ in an empty tree."""
    shutil.copytree(ROOT / "proto", tmp_path / "proto")
    monkeypatch.setattr(build_proto, "HERE", tmp_path)
    return tmp_path


def test_each_file_becomes_its_modules(tree: Path) -> None:
    """Modules and stubs for all, services only where one is declared; the same bytes as in this very tree."""
    build_proto.generate()
    for source in build_proto.sources():
        for path in build_proto.outputs(source):
            assert path.read_bytes() == (ROOT / path.relative_to(tree)).read_bytes()
    assert (tree / "bookie/pb/metadata_service_pb2_grpc.py").exists()
    assert not (tree / "bookie/pb/wire_pb2_grpc.py").exists()


def test_nothing_is_done_twice(tree: Path) -> None:
    """A second call writes nothing; a missing file is made again."""
    build_proto.generate()
    made = {path: path.stat().st_mtime_ns for source in build_proto.sources() for path in build_proto.outputs(source)}
    build_proto.generate()
    assert {path: path.stat().st_mtime_ns for path in made} == made
    lost = tree / "bookie/pb/wire_pb2.py"
    lost.unlink()
    build_proto.generate()
    assert lost.exists()


def test_a_refused_file_is_named(tree: Path) -> None:
    """The compiler's refusal stops the build."""
    (tree / "proto/bookie/pb/wire.proto").write_text("this is no protocol")
    with pytest.raises(RuntimeError, match=r"protoc refused proto/bookie/pb/wire\.proto"):
        build_proto.generate()
