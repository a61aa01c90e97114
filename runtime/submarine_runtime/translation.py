"""Mark sentences for users; translate them where a catalogue is installed.

`docs/messages.md` lists all marked sentences. A catalogue is the file
``locale/LANGUAGE/LC_MESSAGES/submarine.mo`` beside this module. The environment of the process
selects the language (`LANGUAGE`, `LC_ALL`, `LC_MESSAGES`, `LANG`): it is the same for all requests
of a server. Without the directory ``locale`` the sentences stay as they are in the code, and
`gettext` is not imported. Code that is shipped into containers runs without it.
"""

from __future__ import annotations

import os

_LOCALE = os.path.join(os.path.dirname(__file__), "locale")


def _(message: str, /) -> str:
    """Return the translation of ``message``, or ``message`` if there is none.

    ``message`` is a literal; values are inserted afterwards: ``_("{name} failed.").format(...)``.
    """
    return message


def ngettext(one: str, many: str, number: int, /) -> str:
    """Return the translation of ``one`` if ``number`` is 1, else that of ``many``."""
    return one if number == 1 else many


def gettext_noop(message: str, /) -> str:
    """Mark a sentence in a constant; ``_()`` translates it where it is used."""
    return message


if os.path.isdir(_LOCALE):
    # Only here: the import takes milliseconds.
    import gettext

    _catalogue = gettext.translation("submarine", _LOCALE, fallback=True)
    _, ngettext = _catalogue.gettext, _catalogue.ngettext
