"""Read YARN from a container: ResourceManager, queues, waiting reasons, page."""
