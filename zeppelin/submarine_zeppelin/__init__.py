"""The Zeppelin interpreter group ``submarine``: paragraphs in, displays out.

Zeppelin starts it by itself as a process (``python -m submarine_zeppelin``) and speaks thrift with
it; no Java of ours is involved. What a paragraph asks for is done by ``submarine_jobs``.
"""
