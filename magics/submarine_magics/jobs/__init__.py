"""Jobs that one kernel has started, and the guard process for the kernel's death."""
