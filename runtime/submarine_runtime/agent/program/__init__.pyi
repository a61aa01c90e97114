from .client_configuration import place_client_configuration as place_client_configuration
from .ending import (
    Ending as Ending,
    memory_ending as memory_ending,
    requested_ending as requested_ending,
    system_ending as system_ending,
)
from .environment import (
    OWN as OWN,
    ProgramResources as ProgramResources,
    copy_runtime_files as copy_runtime_files,
    interpreter as interpreter,
    process_labels as process_labels,
    runtime_path as runtime_path,
    secret_values as secret_values,
)
from .helpers import HelperError as HelperError, HelperProcesses as HelperProcesses
from .input_streams import InputStreams as InputStreams, prepare_stream as prepare_stream
from .monitor import monitor_program as monitor_program
from .process import Program as Program
from .start import (
    helper_ending as helper_ending,
    setup_of as setup_of,
    start_program as start_program,
)
from .wakeup import SigtermInterrupt as SigtermInterrupt, Wakeup as Wakeup
