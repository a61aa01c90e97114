from .mime_bundles import convert_mime_bundle as convert_mime_bundle
from .output_buffer import OutputBuffer as OutputBuffer, terminal_html as terminal_html
from .shown_job import ShownJob as ShownJob
