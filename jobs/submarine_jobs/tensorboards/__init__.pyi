from .instance import (
    MAX_BYTES as MAX_BYTES,
    MAX_JOBS as MAX_JOBS,
    TensorBoardInstance as TensorBoardInstance,
    scratch_parent as scratch_parent,
)
from .process import Process as Process, require_tensorboard as require_tensorboard
from .scratch import Scratch as Scratch, remove_stale as remove_stale
