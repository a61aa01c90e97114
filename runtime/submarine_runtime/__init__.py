"""Everything of Submarine that travels into a container, shipped as it stands.

Standard library only, Python >= 3.8: the user's environment owes us nothing. Does not submit,
watch or display jobs; that is ``submarine_jobs`` on the notebook's side.
"""
