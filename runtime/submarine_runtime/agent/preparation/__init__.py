"""What a task needs before its program starts: devices, bundle and inputs."""
