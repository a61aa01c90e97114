"""Processes of this machine: resource usage, and a guard that ends them with their parent."""
