"""Choose, merge and show the logs of a job's tasks."""
