from .values import pack_session_values as pack_session_values
