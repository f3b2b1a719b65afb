"""What plain TCP streams carry between hosts: `serve`, or a measurement against servers. One thread for each stream."""

import json
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

PORT = 5077
CHUNK = bytes(1 << 18)
UP, DOWN = b"u", b"d"


def serve() -> None:
    """Take or give as many bytes as each connection asks for, until this process is killed."""
    with socket.create_server(("", PORT)) as listener:
        print("ready", flush=True)
        while True:
            threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()


def answer(sock: socket.socket) -> None:
    """Serve one connection."""
    with sock:
        way, left = sock.recv(1), int.from_bytes(sock.recv(8, socket.MSG_WAITALL), "big")
        move(sock, left, sends=way == DOWN)
        if way == UP:
            sock.sendall(b"!")


def move(sock: socket.socket, count: int, *, sends: bool) -> None:
    """Send or receive so many bytes."""
    room = memoryview(bytearray(CHUNK))
    while count > 0:
        if sends:
            sock.sendall(CHUNK[:count])
            count -= len(CHUNK)
        elif got := sock.recv_into(room[:count]):
            count -= got
        else:
            raise ConnectionError("the stream ended early")


def stream(address: str, way: bytes, count: int) -> None:
    """Move so many bytes to a server or from it."""
    with socket.create_connection((address, PORT)) as sock:
        sock.sendall(way + count.to_bytes(8, "big"))
        move(sock, count, sends=way == UP)
        if way == UP:
            sock.recv(1)


def rate_mb_s(addresses: list[str], way: bytes, mb: int) -> float:
    """Return the MB per second of as many streams as there are servers, all together."""
    began = time.perf_counter()
    with ThreadPoolExecutor(len(addresses)) as threads:
        for done in [threads.submit(stream, one, way, mb * 1_000_000) for one in addresses]:
            done.result()
    return mb * len(addresses) / (time.perf_counter() - began)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    count, *servers = sys.argv[2:]
    print(json.dumps(rate_mb_s(servers, {"up": UP, "down": DOWN}[sys.argv[1]], int(count))))
