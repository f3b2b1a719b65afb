# Nothing of this room is seen from Python.
