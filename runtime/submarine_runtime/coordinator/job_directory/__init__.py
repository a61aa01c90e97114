"""The job directory as the coordinator writes it: claim, outputs, takeover, write gate."""
