"""Hadoop's files and interfaces: download, configuration, REST."""
