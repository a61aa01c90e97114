"""Addresses, ports, TLS and tunnels."""
