"""Values that are exchanged between a notebook and a program, without pickle."""
