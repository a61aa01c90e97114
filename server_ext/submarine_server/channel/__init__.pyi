from .feed import ChannelServices as ChannelServices
from .websocket import ROUTES as ROUTES, SERVICES as SERVICES, attach as attach
