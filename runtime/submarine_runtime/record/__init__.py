"""The job record while it grows, and advice for the owner of a job."""
