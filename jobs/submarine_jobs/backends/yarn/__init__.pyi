from .backend import YarnBackend as YarnBackend
