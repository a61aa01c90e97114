from .context_server import paragraph_forms as paragraph_forms
from .values import pack_session_values as pack_session_values
