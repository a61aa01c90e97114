from .checks import missing_notebooks as missing_notebooks
from .keeper import GRACE as GRACE
from .options import MAX_PARALLEL as MAX_PARALLEL, RunOptions as RunOptions
from .parameters import filler as filler
from .preparation import PROGRAM as PROGRAM
from .session import LocalSession as LocalSession
