from .claims import GpuClaim as GpuClaim, NoDeviceError as NoDeviceError, claim_gpus as claim_gpus
from .device_locks import DeviceLocks as DeviceLocks, LockDirectories as LockDirectories
from .meter import DeviceUtilization as DeviceUtilization, GpuMeter as GpuMeter
from .nvml import Reading as Reading
from .visibility import device_numbers as device_numbers, visible_devices as visible_devices
