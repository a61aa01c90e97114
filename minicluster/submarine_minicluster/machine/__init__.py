"""Resources of this machine: Java, ports, memory, processes, locks."""
