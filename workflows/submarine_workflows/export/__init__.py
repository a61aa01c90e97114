"""Export workflows to other schedulers: Airflow DAG files and crontab lines.

``node_commands`` defines the commands of nodes, which are the same everywhere.
"""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
