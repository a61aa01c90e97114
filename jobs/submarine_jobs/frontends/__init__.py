"""Front ends of the command language: interface, terminal, outcome of a command."""
