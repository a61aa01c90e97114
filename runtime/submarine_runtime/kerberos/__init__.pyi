from .container import (
    GatewayTokens as GatewayTokens,
    ResourceManagerTokens as ResourceManagerTokens,
    WebHdfsTokens as WebHdfsTokens,
    namenode_access as namenode_access,
    resourcemanager_access as resourcemanager_access,
)
from .fetching import (
    NoTokenError as NoTokenError,
    fetch_tokens as fetch_tokens,
    tokens_by_keytab as tokens_by_keytab,
)
from .gssapi import (
    Credential as Credential,
    CredentialState as CredentialState,
    GssError as GssError,
    copy_to_cache as copy_to_cache,
    credential_state as credential_state,
    gssapi_problem as gssapi_problem,
    login as login,
    negotiate as negotiate,
)
from .negotiation import Negotiation as Negotiation
from .tokens import (
    HDFS_TOKEN as HDFS_TOKEN,
    INVALID_TOKEN as INVALID_TOKEN,
    RM_TOKEN as RM_TOKEN,
    TOKEN_FILE_VARIABLE as TOKEN_FILE_VARIABLE,
    Token as Token,
    TokenFile as TokenFile,
    TokenFormatError as TokenFormatError,
    container_tokens as container_tokens,
    parse_tokens as parse_tokens,
    parse_tokens_text as parse_tokens_text,
    token_bytes as token_bytes,
    tokens_text as tokens_text,
)
