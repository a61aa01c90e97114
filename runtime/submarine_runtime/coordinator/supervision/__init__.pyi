from .liveness import LivenessFile as LivenessFile
from .process_identity import ProcessIdentity as ProcessIdentity, start_time as start_time
from .supervisor import CRASHED as CRASHED
