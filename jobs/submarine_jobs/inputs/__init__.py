"""Files that a job reads: localized files and paths in the job's storage."""
