from .server import LiveRequests as LiveRequests
from .views import LiveViews as LiveViews
