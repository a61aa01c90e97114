from .entries import ENTRIES as ENTRIES, Entry as Entry, make_interpreter as make_interpreter
from .interpreter import (
    ANONYMOUS as ANONYMOUS,
    FORM_OPTION as FORM_OPTION,
    Code as Code,
    Completion as Completion,
    Context as Context,
    Interpreter as Interpreter,
    Kind as Kind,
    Message as Message,
    NoteParagraph as NoteParagraph,
    Output as Output,
    ParagraphGoneError as ParagraphGoneError,
    ParagraphKey as ParagraphKey,
    Resources as Resources,
    Result as Result,
    Server as Server,
)
from .java_values import (
    ResourceValue as ResourceValue,
    from_java as from_java,
    java_class as java_class,
    to_java as to_java,
)
from .output_limits import (
    DEFAULT_LIMIT as DEFAULT_LIMIT,
    LIMIT_PROPERTY as LIMIT_PROPERTY,
    fit as fit,
    last_lines as last_lines,
    output_limit as output_limit,
)
from .properties import (
    AUTHENTICATION as AUTHENTICATION,
    NETWORK as NETWORK,
    PROPERTIES as PROPERTIES,
    SESSION_KERNEL as SESSION_KERNEL,
    STOP as STOP,
    STOPS as STOPS,
    authentication_property as authentication_property,
    check_value as check_value,
    choice_property as choice_property,
    flag_property as flag_property,
    number_property as number_property,
    text_property as text_property,
)
