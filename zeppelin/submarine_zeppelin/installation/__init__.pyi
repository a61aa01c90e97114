from .checks import check_installation as check_installation
from .installer import (
    find_installation as find_installation,
    install as install,
    uninstall as uninstall,
)
from .trial_process import start_trial_process as start_trial_process
