"""Storage of job directories: HDFS through hdfs-native, or a path of this machine."""
