from .executions import UNKNOWN as UNKNOWN, Execution as Execution, Executions as Executions
from .output_writer import OutputWriter as OutputWriter
from .resources import ResourcePool as ResourcePool
from .sessions import (
    InterpreterSessions as InterpreterSessions,
    UnknownInterpreterError as UnknownInterpreterError,
)
