"""Views of records, jobs and queues as JSON for the front end."""
