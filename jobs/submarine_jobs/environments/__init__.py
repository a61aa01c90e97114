"""The Python environment of a job's program: on the nodes already, or brought along as an archive.

``python_env`` reads what ``--python-env`` says, ``inventory`` lists what the kernel's own
environment consists of, ``archive`` packs it, ``provide`` sees to it that it is on the cluster,
once per content. Nothing here runs in a container, and nothing is packed for the local backend.
"""
