from .supervisor import SingleTaskAgent as SingleTaskAgent
