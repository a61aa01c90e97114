"""One run of the user's program: environment, start, monitoring and end."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_runtime.agent.program.ending import (
        Ending as Ending,
        memory_ending as memory_ending,
        requested_ending as requested_ending,
        system_ending as system_ending,
    )
    from submarine_runtime.agent.program.environment import (
        ProgramResources as ProgramResources,
        runtime_path as runtime_path,
    )
    from submarine_runtime.agent.program.helpers import (
        HelperError as HelperError,
        HelperProcesses as HelperProcesses,
    )
    from submarine_runtime.agent.program.monitor import monitor_program as monitor_program
    from submarine_runtime.agent.program.process import Program as Program
    from submarine_runtime.agent.program.start import (
        helper_ending as helper_ending,
        setup_of as setup_of,
        start_program as start_program,
    )
    from submarine_runtime.agent.program.wakeup import Terminated as Terminated, Wakeup as Wakeup
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "ending": ("Ending", "memory_ending", "requested_ending", "system_ending"),
            "environment": ("ProgramResources", "runtime_path"),
            "helpers": ("HelperError", "HelperProcesses"),
            "monitor": ("monitor_program",),
            "process": ("Program",),
            "start": ("helper_ending", "setup_of", "start_program"),
            "wakeup": ("Terminated", "Wakeup"),
        },
    )
