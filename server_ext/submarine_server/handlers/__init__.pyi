from .health import NotFoundHandler as NotFoundHandler
from .routes import ROUTES as ROUTES, attach as attach
