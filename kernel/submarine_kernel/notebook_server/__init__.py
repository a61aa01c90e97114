"""Notebook servers in containers of the cluster: ``submarine notebook``.

A server is a job of one task with the role ``notebook``. ``container`` is its program: it starts
JupyterLab or Zeppelin on the container's loopback interface, serves it with the job's TLS
certificate, and stops it after some time without use. The directory of the notebooks is the job's
checkpoint directory, so the agent copies each saved notebook to the job directory.
"""
