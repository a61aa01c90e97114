"""The cluster's state through the ResourceManager's REST interface: applications, queues, nodes."""
