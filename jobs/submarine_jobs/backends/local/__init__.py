"""The ``local`` backend: the agent as a detached process of this machine."""
