from .client import Link as Link
