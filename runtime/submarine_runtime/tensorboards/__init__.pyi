from .job_files import (
    DiskQuota as DiskQuota,
    DiskQuotaError as DiskQuotaError,
    JobFiles as JobFiles,
)
from .server import options as options, plugins as plugins
