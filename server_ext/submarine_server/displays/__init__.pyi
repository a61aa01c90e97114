from .jobs import JobDisplays as JobDisplays
from .metrics import MetricsDisplays as MetricsDisplays
from .workflows import WorkflowDisplays as WorkflowDisplays
