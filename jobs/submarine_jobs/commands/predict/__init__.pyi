from .command import predict as predict
from .model import (
    check_name as check_name,
    model_input as model_input,
    uri_in_job as uri_in_job,
    with_scheme as with_scheme,
)
from .program import (
    RESULT as RESULT,
    check_functions as check_functions,
    functions_of as functions_of,
    with_call as with_call,
)
