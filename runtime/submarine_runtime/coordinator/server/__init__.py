"""The coordinator's port: status, logs and streams for clients."""
