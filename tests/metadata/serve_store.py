"""A process that owns an embedded store and serves it: `python -m tests.metadata.serve_store DIRECTORY PORT`.

It prints one line when it serves, and ends when its standard input is closed.
"""

import sys
from concurrent.futures import ThreadPoolExecutor

import grpc

from bookie.metadata.key_value.driver import KeyValueDriver
from bookie.metadata.key_value.embedded import EmbeddedStore
from bookie_admin.services.metadata_store import STREAMS_MAX, MetadataService


def main() -> None:
    """Serve until standard input is closed."""
    store = EmbeddedStore(sys.argv[1])
    driver = KeyValueDriver(store, session_timeout_s=10)
    driver.start()
    if not driver.cluster.is_initialized():
        driver.cluster.initialize()
    server = grpc.server(ThreadPoolExecutor(STREAMS_MAX + 8))
    MetadataService(store).add_to(server)
    server.add_insecure_port(f"127.0.0.1:{sys.argv[2]}")
    server.start()
    print("serving", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
