from .local_placer import LocalPlacer as LocalPlacer
from .pending_reason import (
    PendingReasonThread as PendingReasonThread,
    missing_containers as missing_containers,
)
from .placer import PlacementThread as PlacementThread, Placer as Placer
from .yarn_placer import YarnPlacer as YarnPlacer
