"""Compares what the engine says that it uses with what its settings permit: memory, connections and long polls."""

from tests.engine.bookie import Engine

__all__ = ["over_budget"]


def over_budget(engine: Engine) -> str:
    """Return which counter is above its limit, or ""."""
    storage, network = engine.storage.storage, engine.network
    used = engine.storage.stats() | engine.port.stats()
    limits = {
        "write_cache_bytes": storage.write_cache_bytes,
        "index_pending_bytes": storage.index_pending_bytes,
        "read_cache_bytes": storage.read_cache_bytes,
        "uncached_read_bytes": storage.uncached_read_bytes,
        "input_buffer_bytes": network.input_bytes_max,
        "output_buffer_bytes": network.output_bytes_max,
        "policy_queued_bytes": network.policy_bytes_max,
        "long_polls_waiting": network.long_polls_max,
        "connections": network.connections_max,
    }
    over = [f"{name} is {used[name]} of {most}" for name, most in limits.items() if used[name] > most]
    return ", ".join(over)
