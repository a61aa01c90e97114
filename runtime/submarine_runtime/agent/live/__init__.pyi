from .server import LiveServer as LiveServer
from .views import LiveViews as LiveViews
