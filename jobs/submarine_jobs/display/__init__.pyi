from .card import BOX as BOX, html as html
from .columns import Table as Table
from .failure import failure_text as failure_text, frames_shown as frames_shown
from .job_table import table as table
from .mime import MIME_TYPE as MIME_TYPE, mimebundle as mimebundle
from .plain import headline as headline, text as text
from .samples import (
    TABLE_MIME_TYPE as TABLE_MIME_TYPE,
    sample_table as sample_table,
    zeppelin_table as zeppelin_table,
)
from .sanitized_record import number as number, sanitize as sanitize
from .status import (
    lost_if_cancelled as lost_if_cancelled,
    next_step as next_step,
    sentence as sentence,
)
from .task_table import all_tasks as all_tasks
from .timeline import EventLines as EventLines
