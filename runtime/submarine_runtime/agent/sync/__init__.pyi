from .chief_checkpoints import ChiefCheckpoints as ChiefCheckpoints
from .sync_thread import SyncThread as SyncThread
