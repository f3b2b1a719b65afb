from bookie._fast.file import Files
from bookie._fast.storage import StoresRoom

def replay_file(stores: StoresRoom, files: Files, path: str, journal_id: int, start: int) -> dict[str, int]: ...
