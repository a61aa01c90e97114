from .backend import LocalBackend as LocalBackend
