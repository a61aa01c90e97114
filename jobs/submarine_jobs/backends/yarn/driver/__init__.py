"""skein's driver: a JVM for each user and cluster configuration, and the calls to it."""
