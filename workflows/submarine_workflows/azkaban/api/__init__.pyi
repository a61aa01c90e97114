from .client import Azkaban as Azkaban, options_of as options_of, parameters_of as parameters_of
from .connection import Connection as Connection
from .credentials import find_password as find_password
from .errors import (
    AzkabanError as AzkabanError,
    NoProjectError as NoProjectError,
    UnsureError as UnsureError,
)
from .executions import (
    Execution as Execution,
    NodeSeen as NodeSeen,
    PastExecution as PastExecution,
    Started as Started,
)
from .logs import Follower as Follower
from .session_file import SessionFile as SessionFile
from .settings import Settings as Settings, load_settings as load_settings
