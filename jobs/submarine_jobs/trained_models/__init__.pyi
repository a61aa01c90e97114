from .formats import (
    input_signature as input_signature,
    load_directory as load_directory,
    load_model as load_model,
)
from .lineage import (
    lineage_rows as lineage_rows,
    read_lineage as read_lineage,
    record_lineage as record_lineage,
)
from .mlflow import publish_to_mlflow as publish_to_mlflow
from .publishing import (
    Published as Published,
    download_published as download_published,
    publish_model as publish_model,
    published_version as published_version,
)
from .source import ModelSource as ModelSource, model_source as model_source
