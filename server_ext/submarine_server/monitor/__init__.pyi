from .job_monitor import JobMonitor as JobMonitor, event_publisher as event_publisher
