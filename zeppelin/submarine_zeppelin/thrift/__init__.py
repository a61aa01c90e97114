"""The process that Zeppelin's server talks to: its thrift protocol, executions, outputs, its end.

Turns Zeppelin's calls into those of ``paragraph`` and back; knows nothing of jobs.
"""
