from .agent_stream import AgentEndpoint as AgentEndpoint
from .client_requests import ClientRequests as ClientRequests
from .link_server import Connection as Connection, LinkServer as LinkServer
