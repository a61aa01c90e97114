from .files import replace_file as replace_file
from .java import Java as Java, find_java as find_java
from .locking import file_lock as file_lock
