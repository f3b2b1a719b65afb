"""Code that build_proto.py generates from proto/ at every build. Only this line is kept; never edit the rest."""
