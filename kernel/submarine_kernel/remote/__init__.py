"""A kernel in a container of the cluster: the provisioner ``submarine-yarn`` and its two ends.

``keeper`` is the program of the job, in the container; ``owner`` is who holds it, on the notebook's
side; between them is a tunnel through the port of the job (``submarine_jobs.access.tunnel``).
"""
