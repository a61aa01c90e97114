"""The agent of a job with one task: from the claim to the record."""
