"""The yarn backend: jobs as skein applications on a YARN cluster."""
