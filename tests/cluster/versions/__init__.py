"""The core of the cluster's tests on each release of Hadoop that the minicluster starts."""
