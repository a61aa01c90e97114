"""Start, stop and repair the cluster's processes."""
