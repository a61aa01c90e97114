from .container import provisioning as provisioning
from .installation import install_kernel as install_kernel, kernel_json as kernel_json
from .installed import container_request as container_request
from .settings import read_settings as read_settings
