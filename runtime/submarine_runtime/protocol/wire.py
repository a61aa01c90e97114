"""The HTTP interface of a job's port: paths, headers and the lines of the live stream.

A job of one task serves the agent's port. A distributed job serves the coordinator's port; the
coordinator fetches logs from the agents' ports on demand.

HTTPS with the certificate of the job, which the client pins; every request carries
``Authorization: Bearer <token>``.

========================================  =====================================================
``GET /v1/status``                        the job record, live
``GET /v1/log?task=&attempt=&stream=&offset=&limit=``  bytes from ``offset`` (negative: from the
                                          end); ``attempt`` is ``e1-a1``, absent: the newest;
                                          headers ``X-Submarine-Offset`` (of the first byte sent)
                                          and ``X-Submarine-Length`` (of the log so far)
``GET /v1/times?task=&attempt=&stream=``  lines ``offset seconds``: length of the log over time, as
                                          shipped at the end of the attempt
``GET /v1/stream?events=N&stdout=N&stderr=N&helper=N``  newline-delimited JSON until the job has
                                          ended; a negative offset counts from the end of the log
``GET /v1/stream?events=N&tasks=&at=``      the same from a coordinator: ``tasks`` is a comma list
                                          or ``*``, ``at`` a comma list of
                                          ``worker:0/e1-a1/stdout=OFFSET``; streams that are not in
                                          ``at`` start at 0, or ``tail=BYTES`` before their end
``POST /v1/cancel``                       body ``{"by": user, "why": text}``; 202, idempotent
``POST /v1/save``                         body ``{"name": text or ""}``; upload the model directory
                                          now as a named version; 200 with its JSON
``POST /v1/look``                         a client displays the TensorBoard files: for a minute they
                                          are shipped every other second; no body; 202
``POST /v1/renew``                        the client that started the job renews its lease; no
                                          body; 202, also for a job without a lease
``POST /v1/tokens``                       body ``{"tokens": text}``: fresh delegation tokens of the
                                          user (``kerberos.tokens_text``); 202
``GET /v1/tunnel?name=`` (Upgrade)        raw bytes to the target that the program has declared by
                                          that name (``protocol.tunnels``): 101, 404, or 503 if the
                                          target does not accept. A coordinator forwards it to the
                                          agent of ``task=``, or of the only task
``GET /v1/stacks?task=``                  the stacks of the program's processes now, of one task or
                                          of all: ``sentence waits_for groups`` of
                                          ``stacks.Report``; with ``raw=1`` an agent answers the
                                          list ``entries`` of ``stacks.take``
``POST /v1/stand_down``                   a later attempt of the application to an earlier one's
                                          coordinator that still runs: 202, and it exits
``GET /v1/link`` (Upgrade)                agents to their coordinator; see ``protocol.link``
========================================  =====================================================

Lines of the stream, by ``type``:

``status``  ``record``: the job record without its events; sent first and on each change, at most
            twice a second
``event``   ``event``: one event, in order
``log``     ``task attempt stream offset data``: ``data`` is base64 of at most 64 KiB of the log
``skip``    ``task attempt stream offset to``: not sent because the reader was too slow
``ping``    every 5 s without another line
``end``     ``record``: the final record; the last line
"""

from __future__ import annotations

STATUS = "/v1/status"
LOG = "/v1/log"
TIMES = "/v1/times"
STREAM = "/v1/stream"
CANCEL = "/v1/cancel"
SAVE = "/v1/save"
LOOK = "/v1/look"
RENEW = "/v1/renew"
TOKENS = "/v1/tokens"
LINK = "/v1/link"
TUNNEL = "/v1/tunnel"
STACKS = "/v1/stacks"
STAND_DOWN = "/v1/stand_down"
OFFSET_HEADER = "X-Submarine-Offset"
LENGTH_HEADER = "X-Submarine-Length"
MAX_LOG_BYTES = 1 << 20
MAX_LINE_LOG_BYTES = 1 << 16
PING_SECONDS = 5.0
