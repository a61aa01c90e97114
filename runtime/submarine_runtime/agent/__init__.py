"""The process in each container that runs the user's program, ships its log and reports on it.

Started as ``python -I runtime.zip agent --directory DIR``. Standard library only, Python 3.8 or
later. The backend requests containers from YARN; the agent does not.
"""
