from bookie._fast.file import Files
from bookie._fast.storage import StoresRoom

NOT_HERE: int

def replay_file(stores: StoresRoom, files: Files, path: str, journal_id: int, begins: list[int]) -> dict[str, int]: ...
