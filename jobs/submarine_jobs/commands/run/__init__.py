"""The verb ``run``: options, program, checks, dry run, submit."""
