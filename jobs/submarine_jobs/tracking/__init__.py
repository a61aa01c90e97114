"""State of jobs that is not in one handle: local index, observation, closing, leases."""
