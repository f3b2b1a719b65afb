"""Generate the protobuf and gRPC modules from proto/ into the packages next to this file. Run by setup.py, or by hand.

A file `proto/a/b.proto` becomes `a/b_pb2.py`, `a/b_pb2.pyi` and, if it declares a service, `a/b_pb2_grpc.py`.
Nothing is written while all of these are newer than every .proto file and this one.
"""

from pathlib import Path

from grpc_tools import protoc

HERE = Path(__file__).resolve().parent


def sources() -> list[Path]:
    return sorted((HERE / "proto").rglob("*.proto"))


def outputs(source: Path) -> list[Path]:
    """Return the files that are generated from `source`."""
    stem = HERE / source.relative_to(HERE / "proto").with_suffix("")
    names = [f"{stem.name}_pb2.py", f"{stem.name}_pb2.pyi"]
    if _declares_service(source):
        names.append(f"{stem.name}_pb2_grpc.py")
    return [stem.with_name(name) for name in names]


def generate() -> None:
    """Bring the generated modules up to date. Raise RuntimeError if the compiler refuses a file."""
    stale = [source for source in sources() if _stale(source)]
    if not stale:
        return
    for source in stale:
        package = outputs(source)[0].parent
        package.mkdir(parents=True, exist_ok=True)
        command = ["protoc", f"-I{HERE / 'proto'}", f"--python_out={HERE}", f"--pyi_out={HERE}"]
        if _declares_service(source):
            command.append(f"--grpc_python_out={HERE}")
        if protoc.main([*command, str(source)]) != 0:
            raise RuntimeError(f"protoc refused {source.relative_to(HERE)}: its message is printed above")


def _declares_service(source: Path) -> bool:
    return any(line.startswith("service ") for line in source.read_text().splitlines())


def _stale(source: Path) -> bool:
    newest = max(path.stat().st_mtime_ns for path in [*sources(), Path(__file__)])
    return any(not path.exists() or path.stat().st_mtime_ns < newest for path in outputs(source))


if __name__ == "__main__":
    generate()
