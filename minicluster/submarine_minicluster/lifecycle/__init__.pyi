from .shutdown import kill_node as kill_node, stop_all as stop_all
from .startup import Startup as Startup, own_names as own_names
