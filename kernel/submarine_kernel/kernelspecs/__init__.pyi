from .container import provisioning as provisioning
from .installation import install_kernel as install_kernel, kernel_json as kernel_json
from .settings import read_settings as read_settings
