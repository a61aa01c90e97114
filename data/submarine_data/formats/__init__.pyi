from .base import Format as Format, Reading as Reading, Split as Split
from .detection import create_format as create_format, format_names as format_names
from .text import raw_lines as raw_lines
