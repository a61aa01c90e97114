from .distributed import containers_needed as containers_needed
from .localized_files import localized_words as localized_words
from .maker import ApplicationMaker as ApplicationMaker
from .submission import submit_application as submit_application
