from .files import FLOWS as FLOWS, open_workflow as open_workflow
from .flow1 import read_jobs as read_jobs, read_properties as read_properties
from .flow2 import read_workflow as read_workflow
from .marked_yaml import Value as Value, load as load
