from .completion import complete as complete, complete_text as complete_text
from .headless_options import with_headless_options as with_headless_options
from .help import help_at as help_at, help_on as help_on
from .run_defaults import (
    default_words as default_words,
    option_named as option_named,
    set_defaults as set_defaults,
    spellings as spellings,
    with_defaults as with_defaults,
)
