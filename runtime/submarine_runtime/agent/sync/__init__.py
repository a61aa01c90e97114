"""Synchronization of checkpoints, model and TensorBoard files while the program runs."""
