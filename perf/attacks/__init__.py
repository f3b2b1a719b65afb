"""What clients that mean no harm notice while others do: `python -m perf.attacks`."""
