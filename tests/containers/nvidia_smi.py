"""Stand-in for nvidia-smi: print what the NodeManager reads about the devices of a cell."""

from __future__ import annotations

from tests.containers.first_process import DEVICES

_GPU = """\
<gpu id="00000000:00:0{index}.0">
  <product_name>Stand-in</product_name>
  <uuid>GPU-0000000{index}-0000-0000-0000-000000000000</uuid>
  <minor_number>{minor}</minor_number>
  <fb_memory_usage><total>16384 MiB</total><used>0 MiB</used><free>16384 MiB</free>
  </fb_memory_usage>
  <utilization><gpu_util>0 %</gpu_util><memory_util>0 %</memory_util></utilization>
  <temperature><gpu_temp>30 C</gpu_temp><gpu_temp_max_threshold>90 C</gpu_temp_max_threshold>
  <gpu_temp_slow_threshold>85 C</gpu_temp_slow_threshold></temperature>
</gpu>
"""


def report() -> str:
    """Return the XML of `nvidia-smi -x -q`."""
    gpus = "".join(
        _GPU.format(index=index, minor=minor) for index, (_, minor) in enumerate(DEVICES.values())
    )
    return (
        '<?xml version="1.0" ?>\n<nvidia_smi_log><driver_version>550.0</driver_version>'
        f"<attached_gpus>{len(DEVICES)}</attached_gpus>\n{gpus}</nvidia_smi_log>\n"
    )
