"""Jobs in Docker images, under LinuxContainerExecutor and on several nodes.

All processes run in one cell: a set of Linux namespaces with its own users, devices, network and
Docker daemon. The machine itself is not changed.
"""
