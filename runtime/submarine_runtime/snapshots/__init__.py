"""Snapshots of checkpoints, model versions and TensorBoard files in the job directory."""
