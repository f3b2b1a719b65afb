"""The access log of the data port: its thread, and the handling of failed writes.

The I/O loops produce the lines, and module `server.access_log` writes them without Python.
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
    """The access log. Call `start`, then `stop` (idempotent) after the loops have ended."""

    def __init__(self, settings: NetworkSettings) -> None:
        self.path = settings.access_log
        try:
            self.buffer = AccessLogBuffer(self.path, sample_rate=settings.access_log_share,
                                      file_bytes_max=settings.access_log_file_bytes_max,
                                      files_max=settings.access_log_files_max)  # fmt: skip
        except ValueError as error:
            raise StartRefused(
                f"accessLogSampleRate={settings.access_log_share} is not a valid share: {error}"
            ) from error
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="access-log", daemon=True)

    def start(self) -> None:
        """Start writing."""
        self._thread.start()

    def stop(self) -> None:
        """Write the rest and stop."""
        self._ended.set()
        self.buffer.stop()
        if self._thread.is_alive():
            self._thread.join()
        self.buffer.close()

    def _run(self) -> None:
        while failed := self.buffer.run():
            reason = errno.errorcode.get(failed, str(failed))
            log.warning("the access log cannot be written", extra={"path": self.path, "error": reason})
            if self._ended.wait(RETRY_S):
                return
