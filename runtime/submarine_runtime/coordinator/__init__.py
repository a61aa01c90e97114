"""The one process that leads a distributed job: gang, links to the agents, faults, completion.

Also the helper that shows a job on its own YARN page. The one place in the runtime that may import
skein, and only ``page`` and ``yarn_placer`` do. What one task does is the agent's.
"""
