from .activity import GPUS as GPUS, PROGRAM as PROGRAM, Activity as Activity
from .event_files import scalars as scalars
from .measurement import Measurement as Measurement
from .samples import SampleLog as SampleLog, sample_shipper as sample_shipper
