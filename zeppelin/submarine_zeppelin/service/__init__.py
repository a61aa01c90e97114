"""The thrift service that Zeppelin calls."""
