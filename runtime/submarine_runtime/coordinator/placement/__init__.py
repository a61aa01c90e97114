"""Request and release containers: YARN through skein, or processes of this machine."""
