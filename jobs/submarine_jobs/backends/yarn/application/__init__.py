"""Build the YARN application of a job: containers, files, scripts; and hand it to the driver."""
