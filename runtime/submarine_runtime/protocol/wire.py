"""What an agent answers on its port: paths, headers and the lines of the live stream.

HTTPS with the certificate of the job, which the client pins; every request carries
``Authorization: Bearer <token>``. Holds names only; the server is ``agent``, the client is
``submarine_jobs``.

========================================  =====================================================
``GET /v1/status``                        the job record, live
``GET /v1/log?task=&stream=&offset=&limit=``  bytes from ``offset`` (negative: from the end);
                                          headers ``X-Submarine-Offset`` (of the first byte sent)
                                          and ``X-Submarine-Length`` (of the log so far)
``GET /v1/stream?events=N&stdout=N&stderr=N``  newline-delimited JSON until the job has ended
``POST /v1/cancel``                       body ``{"by": user, "why": text}``; 202, idempotent
========================================  =====================================================

Lines of the stream, told apart by ``type``:

``status``  ``record``: the job record without its events; sent first and on each change, at most
            twice a second
``event``   ``event``: one event, in order
``log``     ``task stream offset data``: ``data`` is base64 of at most 64 KiB of the log
``skip``    ``task stream offset to``: bytes that were not sent because the reader was too slow
``ping``    every 5 s when there is nothing else to say
``end``     ``record``: the final record; the last line
"""

from __future__ import annotations

STATUS = "/v1/status"
LOG = "/v1/log"
STREAM = "/v1/stream"
CANCEL = "/v1/cancel"
OFFSET_HEADER = "X-Submarine-Offset"
LENGTH_HEADER = "X-Submarine-Length"
MAX_LOG_BYTES = 1 << 20
MAX_LINE_LOG_BYTES = 1 << 16
PING_SECONDS = 5.0
