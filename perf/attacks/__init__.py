"""The latency of honest clients during attacks: `python -m perf.attacks`."""
