"""The agent of a task of a distributed job."""
