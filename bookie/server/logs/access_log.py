"""The access log beside the data port: its thread, and what a failed write comes to.

The lines come from the I/O loops and are written by module `server.access_log`, without Python.
"""

import errno
import logging
import threading

from bookie._fast.server.access_log import AccessLogBuffer
from bookie.errors import StartRefused
from bookie.server.configuration.settings import NetworkSettings

__all__ = ["AccessLog"]

RETRY_S = 10.0
log = logging.getLogger(__name__)


class AccessLog:
    """`start`, then `stop` (idempotent) when the loops have ended."""

    def __init__(self, settings: NetworkSettings) -> None:
        self.path = settings.access_log
        try:
            self.buffer = AccessLogBuffer(self.path, sample_rate=settings.access_log_share,
                                      file_bytes_max=settings.access_log_file_bytes_max,
                                      files_max=settings.access_log_files_max)  # fmt: skip
        except ValueError as error:
            raise StartRefused(f"accessLogSampleRate={settings.access_log_share} is no share; {error}") from error
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="access-log", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def stop(self) -> None:
        """Write what is left and end."""
        self._ended.set()
        self.buffer.stop()
        if self._thread.is_alive():
            self._thread.join()
        self.buffer.close()

    def _run(self) -> None:
        while failed := self.buffer.run():
            reason = errno.errorcode.get(failed, str(failed))
            log.warning("cannot write the access log", extra={"path": self.path, "error": reason})
            if self._ended.wait(RETRY_S):
                return
