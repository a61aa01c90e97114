"""Notebook servers in containers of the cluster: ``submarine notebook``.

A server is a job of one task with the role ``notebook``. ``container`` is its program: it starts
JupyterLab or Zeppelin on the container's loopback interface, listens in front of it with the job's
certificate, and ends it after some time without use. The directory of the notebooks is the job's
checkpoint directory, so the agent copies each saved notebook to the job directory.
"""
