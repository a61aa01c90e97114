"""What a job leaves behind: returned values, models, metrics, files."""
