"""Authentication on clusters that use Kerberos: tickets through libgssapi, delegation tokens."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
