# No Python surface: other compiled modules cimport this one.
