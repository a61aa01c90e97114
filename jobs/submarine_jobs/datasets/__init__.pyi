from .dataset import (
    Dataset as Dataset,
    Sample as Sample,
    check_dataset_name as check_dataset_name,
)
from .frames import (
    is_frame as is_frame,
    read_results as read_results,
    without_index as without_index,
)
from .putting import put_value as put_value
from .references import REFERENCE as REFERENCE, resolve_datasets as resolve_datasets
from .staging import StagedContent as StagedContent
from .store import DatasetStore as DatasetStore, PutResult as PutResult
from .verification import (
    is_exact_candidate as is_exact_candidate,
    stage_exact_frame as stage_exact_frame,
)
