"""Logs over versioned keys: one key for each, `logs/<name>`. Any thread."""

from collections.abc import Callable, Iterator

from bookie.errors import LogExists, MetadataVersionConflict, NoSuchLog
from bookie.metadata.driver import Subscription, Versioned
from bookie.metadata.key_value.keys import Item, KeyAbsent, KeyExists, KeyValues, VersionConflict, pages
from bookie.metadata.records.logs import Log, check_name, parse_log, serialize_log
from bookie.metadata.watching import Watcher

LOGS = "logs/"


class KeyValueLogs:
    """Implements `driver.Logs`."""

    def __init__(self, store: KeyValues, watcher: Watcher) -> None:
        self._store = store
        self._watcher = watcher

    def create(self, name: str, log: Log) -> Versioned[Log]:
        try:
            return _versioned(log, self._store.put(_key(name), serialize_log(name, log), None))
        except KeyExists as error:
            raise LogExists(f"log {name!r} already exists") from error

    def read(self, name: str) -> Versioned[Log]:
        found = self._find(name)
        if found is None:
            raise NoSuchLog(f"log {name!r} does not exist")
        return found

    def write(self, name: str, log: Log, version: int) -> Versioned[Log]:
        try:
            return _versioned(log, self._store.put(_key(name), serialize_log(name, log), version))
        except KeyAbsent as error:
            raise NoSuchLog(f"log {name!r} does not exist") from error
        except VersionConflict as error:
            raise MetadataVersionConflict(f"log {name!r} is no longer at version {version}: read it anew") from error

    def delete(self, name: str, version: int | None = None) -> None:
        try:
            self._store.delete(_key(name), version)
        except KeyAbsent as error:
            raise NoSuchLog(f"log {name!r} does not exist") from error
        except VersionConflict as error:
            raise MetadataVersionConflict(f"log {name!r} is no longer at version {version}: read it anew") from error

    def names(self) -> Iterator[list[str]]:
        for page in pages(self._store, LOGS):
            yield [key.removeprefix(LOGS) for key in page]

    def watch(self, name: str, listener: Callable[[Versioned[Log] | None], None]) -> Subscription:
        return self._watcher.add(lambda _watch: self._find(name), listener, topic=_key(name))

    def _find(self, name: str) -> Versioned[Log] | None:
        item = self._store.get(_key(name))
        return None if item is None else _versioned(parse_log(name, item.value), item)


def _key(name: str) -> str:
    return LOGS + check_name(name)


def _versioned(log: Log, item: Item) -> Versioned[Log]:
    return Versioned(log, item.version, item.created_ms)
