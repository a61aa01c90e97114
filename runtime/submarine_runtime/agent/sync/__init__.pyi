from .chief_checkpoints import ChiefCheckpoints as ChiefCheckpoints
from .other_tasks import OtherTasksFiles as OtherTasksFiles
from .sync_thread import SyncThread as SyncThread
