from .capture import parse_dump as parse_dump, rank_processes as rank_processes, take as take
from .folding import Report as Report, report as report
