"""Turn a spec and a bundle into a running job: directory, intent, configuration."""
