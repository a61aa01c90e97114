from .errors import PredictionError as PredictionError
from .functions import BATCH_FORMATS as BATCH_FORMATS, Functions as Functions
from .parts import Part as Part, cut as cut, part_size as part_size
from .runner import run as run
from .summary import MANIFEST as MANIFEST
