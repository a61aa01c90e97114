from .document import select_cells as select_cells
from .failures import MAX_MESSAGE as MAX_MESSAGE, why_failed as why_failed
from .signals import SignalRecorder as SignalRecorder
