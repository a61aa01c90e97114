from .event_files import scalars as scalars
from .measurement import Measurement as Measurement
from .samples import SampleLog as SampleLog, sample_shipper as sample_shipper
