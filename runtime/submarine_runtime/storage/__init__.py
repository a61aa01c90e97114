"""The job directory as containers see it, and the scratch directory of a container."""
