from .liveness import LivenessFile as LivenessFile
from .process_identity import ProcessIdentity as ProcessIdentity, start_time as start_time
from .supervisor import INTERNAL_ERROR_CODE as INTERNAL_ERROR_CODE
