from .single_task_agent import SingleTaskAgent as SingleTaskAgent
