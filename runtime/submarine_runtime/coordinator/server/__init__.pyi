from .agent_stream import AgentEndpoint as AgentEndpoint
from .client_requests import ClientRequests as ClientRequests
