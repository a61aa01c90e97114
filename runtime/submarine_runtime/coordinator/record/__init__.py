"""The job's record and events while the job runs, and the journal of the state machine."""
