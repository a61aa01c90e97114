from .log_files import LogFiles as LogFiles
from .log_shipper import LogShipper as LogShipper, log_shippers as log_shippers
from .publisher import Publisher as Publisher
from .shipping_thread import LogShippingThread as LogShippingThread
