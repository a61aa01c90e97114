from .server import options as options, plugins as plugins
