"""The process in each container: starts the user's program, keeps its log, reports on it.

Started as ``python -I runtime.zip agent --directory DIR``. Standard library only, Python >= 3.8.
Does not talk to YARN and does not place anything; that is the backend's work.
"""
