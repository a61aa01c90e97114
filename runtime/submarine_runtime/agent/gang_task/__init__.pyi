from .task_agent import TaskAgent as TaskAgent
