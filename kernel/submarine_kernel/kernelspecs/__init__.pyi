from .settings import read_settings as read_settings
