"""What can be wrong with a configuration and needs no disk to be found, besides what reading it finds. Main thread."""

from bookie.server.control import Control, discover, discover_services

__all__ = ["check_parts"]


def check_parts(control: Control) -> None:
    """Check the files of the planes, such as tokens and certificates, and the settings of services.

    Raises ConfigurationError.
    """
    for _, factory in discover():
        if plane := factory(control):
            try:
                plane.check()
            finally:
                plane.stop(0)
    for _, service in discover_services():
        service(control)
