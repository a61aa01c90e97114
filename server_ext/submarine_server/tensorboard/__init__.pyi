from .handler import ROUTES as ROUTES
from .registry import attach as attach
