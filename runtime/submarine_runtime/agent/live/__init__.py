"""The agent's port: status, logs, streams and tunnels of a running task."""
