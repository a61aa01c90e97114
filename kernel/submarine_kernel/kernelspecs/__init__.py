"""Kernelspecs: ``submarine kernel install|list|check|uninstall``, ``kernel.json``."""
