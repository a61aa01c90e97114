from .agent_stream import AgentEndpoint as AgentEndpoint
from .client_requests import ClientRequests as ClientRequests
from .stack_collector import StackCollector as StackCollector
