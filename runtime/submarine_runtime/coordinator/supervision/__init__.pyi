from .liveness import LivenessFile as LivenessFile
from .supervisor import INTERNAL_ERROR_CODE as INTERNAL_ERROR_CODE
