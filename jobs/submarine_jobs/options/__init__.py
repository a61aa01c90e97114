"""What may be written after ``run``: values parsed and formatted, refusals, the way to a spec.

Pure functions and data: no click, no cluster, no files. The command itself is ``commands.run``.
"""
