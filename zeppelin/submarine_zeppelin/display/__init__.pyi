from .card_updater import CardUpdater as CardUpdater
from .output_buffer import OutputBuffer as OutputBuffer, terminal_html as terminal_html
from .page import JobCard as JobCard, Page as Page
