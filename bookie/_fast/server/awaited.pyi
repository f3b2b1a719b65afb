# No Python surface: other compiled rooms cimport this one.
