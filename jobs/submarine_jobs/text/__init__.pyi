from .formatting import (
    duration as duration,
    memory as memory,
    running_duration as running_duration,
    size as size,
    timestamp as timestamp,
)
from .sanitize import (
    escape_html as escape_html,
    escape_html_line as escape_html_line,
    one_line as one_line,
    printable as printable,
    web_link as web_link,
)
from .siblings import sibling_hint as sibling_hint
from .terminal import TerminalFilter as TerminalFilter, filter_for_terminal as filter_for_terminal
