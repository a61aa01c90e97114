from .feed import ChannelServices as ChannelServices, Credit as Credit
from .websocket import ROUTES as ROUTES, SERVICES as SERVICES, attach as attach
