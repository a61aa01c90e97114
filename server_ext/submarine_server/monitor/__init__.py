"""The one watcher of a server: all jobs by one poll, those on display by one stream each."""
