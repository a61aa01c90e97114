from .idleness import report_idle as report_idle
from .single_task_agent import SingleTaskAgent as SingleTaskAgent
