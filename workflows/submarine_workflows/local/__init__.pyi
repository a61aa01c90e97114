from .checks import missing_notebooks as missing_notebooks
from .options import MAX_PARALLEL as MAX_PARALLEL, RunOptions as RunOptions
from .parameters import parameter_filler as parameter_filler
from .preparation import PROGRAM as PROGRAM
from .process_guard import GRACE as GRACE
from .session import LocalSession as LocalSession
