"""Python workers that end in silence when Spark has closed their socket. Runs in a worker that PySpark has forked.

A worker that waits for its next task gets the end of the stream when Spark stops, or after an idle minute. It tries to
report that, which fails, and PySpark prints a traceback of the `BrokenPipeError`. Often only the first line of it
appears, because a signal ends the workers at the same time. Errors of tasks are reported through the socket.
"""

import functools
import sys
from collections.abc import Callable

__all__ = ["end_in_silence"]

DAEMON = "pyspark.daemon"
ENDED = 1
"""What PySpark's function returns after a failure: the worker gets no further task."""


def end_in_silence() -> None:
    """Let this process end without a traceback when Spark closes its socket, if it is a worker of PySpark's daemon.

    PySpark calls its function `worker` anew for each task, so this takes effect after the present one.
    """
    main = sys.modules["__main__"]
    serve: Callable[..., int] | None = getattr(main, "worker", None)
    if getattr(main.__spec__, "name", None) != DAEMON or serve is None or hasattr(serve, "__wrapped__"):
        return

    @functools.wraps(serve)
    def quiet(*given: object) -> int:
        try:
            return serve(*given)
        except ConnectionError:
            return ENDED

    setattr(main, "worker", quiet)  # noqa: B010  # mypy does not know PySpark's module by this name
