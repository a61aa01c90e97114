from .distributed import (
    RACK_NODES as RACK_NODES,
    gang_of as gang_of,
    least_of as least_of,
    make_gang_plan as make_gang_plan,
)
from .single import (
    AGENT_MEMORY as AGENT_MEMORY,
    SLACK_BESIDE as SLACK_BESIDE,
    SLACK_TOGETHER as SLACK_TOGETHER,
    ClusterView as ClusterView,
    make_plan as make_plan,
    steps_of as steps_of,
)
from .spark import driver_overhead as driver_overhead, make_spark_plan as make_spark_plan
