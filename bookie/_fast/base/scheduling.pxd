"""How the kernel schedules our threads: data threads ask for short slices, so that they run soon after they wake."""
