"""The coordinator of a distributed job: places tasks, forms the gang, restarts and ends the job.

``coordinator.Coordinator`` runs a job. ``machine`` decides, ``event_loop`` drives it, ``server`` is
the port of agents and clients, ``placement`` requests containers, ``record`` and ``job_directory``
keep what is known of the job. ``supervision`` starts the coordinator again when it dies.
"""
