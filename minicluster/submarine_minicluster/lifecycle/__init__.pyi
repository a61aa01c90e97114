from .planning import (
    choose_settings as choose_settings,
    save_with_ports as save_with_ports,
)
from .shutdown import kill_node as kill_node, stop_all as stop_all
from .startup import (
    Startup as Startup,
    make_home as make_home,
    own_user_names as own_user_names,
)
