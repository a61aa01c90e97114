from .client import Azkaban as Azkaban, options_of as options_of, parameters_of as parameters_of
from .connection import Connection as Connection, SessionFile as SessionFile
from .credentials import find_password as find_password
from .errors import (
    AzkabanError as AzkabanError,
    NoProjectError as NoProjectError,
    UnconfirmedError as UnconfirmedError,
    UnreachableError as UnreachableError,
)
from .executions import (
    Execution as Execution,
    ExecutionSummary as ExecutionSummary,
    NodeExecution as NodeExecution,
    StartResult as StartResult,
)
from .logs import LogFollower as LogFollower
from .settings import Settings as Settings, load_settings as load_settings
