"""The words that both sides of a job speak: states, end reasons, events, record, paths, wire.

Holds data and rules only: nothing here opens a file, a socket or a process. Versioned by
``PROTOCOL_VERSION``; a newer client reads what an older agent wrote, so fields are only added and
readers ignore the fields that they do not know.
"""

PROTOCOL_VERSION = 1
