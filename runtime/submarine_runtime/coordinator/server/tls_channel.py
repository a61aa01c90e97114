"""The TLS connection of the agents' streams."""

from submarine_runtime.port import TlsChannel as TlsChannel
