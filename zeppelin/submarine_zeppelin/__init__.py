"""The Zeppelin interpreter group ``submarine``.

Zeppelin starts ``python -m submarine_zeppelin`` as a process and calls it over thrift; no Java code
is needed. ``submarine_jobs`` carries out the commands of paragraphs.
"""
