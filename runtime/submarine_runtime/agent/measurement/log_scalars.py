"""Find training scalars in lines of output, in the forms that libraries print.

A form is matched as a whole, so that other text is no scalar. Lines of pairs and dictionaries,
which programs print for many reasons, count only if one of their names is a measure, such as
``loss``.
"""

from __future__ import annotations

import re
from typing import Iterator

#: Number of lines that are parsed at one look: the newest, and as many others of different forms.
MAX_LINES = 64
#: Bytes of a dictionary, of a line of pairs, and of one with a bar.
MAX_LINE = 1 << 13
MAX_TEXT_LINE = 1 << 10
MAX_BAR_LINE = 1 << 11
_VARIABLE = re.compile(rb"(?<![A-Za-z_-])[-+]?[\d.]+(?:e[-+]?\d+)?")
_BAR_SIGNS = b" #" + bytes(range(128, 256))
_NUMBER = rb"[-+]?(?:(?:\d{1,18}(?:\.\d{0,24})?|\.\d{1,24})(?:e[-+]?\d{1,3})?|nan|inf(?:inity)?)"
_NAME = rb"[a-z_][\w./@-]{0,47}"
#: tqdm writes "nan.0".
_NAN = rb"(?:(?<=[nf])\.0)?"


def _regex(*parts: bytes) -> re.Pattern[bytes]:
    return re.compile(b"".join(parts), re.IGNORECASE)


_COLOUR = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")
_END = re.compile(rb"[\r\n\x08]+")
#: What precedes a line of one of several processes: "[1] ", "[rank1]:", "[default1]:".
_RANK = _regex(rb"\[[a-z]{0,16}\d{1,6}\](?:: ?| )")
#: Keras: "45/938 ---- 3ms/step - loss: 0.31".
_STEP = re.compile(rb"\s{0,9}\d{1,9}/\d{1,9}\s")
_STEP_PAIR = _regex(rb"- {1,3}(", _NAME, rb"): (", _NUMBER, rb")(?=\s*(?:-|$))")
#: tqdm: "45%|###  | 45/100 [00:10<00:12, 4.32it/s, loss=0.25]", "45it [00:10, 4.32it/s, loss=0.2]".
_BAR = re.compile(
    rb"(?:\d{1,3}%\|[^|]{0,300}\| *[\d.]+[kMGT]?/[\d.]+[kMGT]?|\b\d[\d.]*[kMGT]?it) "
    rb"\[[^\],]{0,80},[^\]]{0,1000}\]"
)
_POSTFIX = _regex(rb", (", _NAME, rb")(?:=|: ?)(", _NUMBER, rb")", _NAN, rb"(?=[,\]])")
#: XGBoost and LightGBM: "[0]<tab>train-auc:0.9", "[1]<tab>train's auc: 0.9 + 0.01".
_TREES = re.compile(rb"(?:\[\d\d:\d\d:\d\d\] )?\[\d{1,9}\]((?:\t[^\t]{1,100}:[^\t:]{1,60})+)")
_TREES_PAIR = _regex(rb"\t([^\t:]{1,60}): ?(", _NUMBER, rb")(?= ?\+|\t|$)")
#: One item of a flat JSON object or Python dictionary.
_ITEM = _regex(
    rb"\s*([\"'])([^\"'\\]{1,64})\1\s*:\s*(?:"
    rb"(?:(?:np\.|numpy\.)?(?:float\d*|int\d*|tensor)\()?[\"']?(",
    _NUMBER,
    rb")[\"']?(?:(?:, [^(){}]{0,80})?\))?|\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[a-z]{1,8}"
    rb"|\[[^\[\]{}]*\])\s*([,}])",
)
#: Pairs among numbers and words that say where the training is.
_OF = rb"(?:train(?:ing)?|val(?:id(?:ation)?)?|test|eval(?:uation)?|avg|average|mean|final|best)"
_TEXT_PAIR = _regex(
    rb"(?<![\w./@\"'-])((?:", _OF, rb" ){0,2}", _NAME, rb")(?: {0,24}= ?|: {1,9})(", _NUMBER, rb")"
    rb"%?", _NAN, rb"(?=[\s,;|)]|$)",
)  # fmt: skip
#: A pair whose value is no number, such as "time=3.2s".
_OTHER_PAIR = _regex(rb"(?<![\w./@\"'-])", _NAME, rb"(?:=|: ?(?=\d))[^\s,;|]+")
#: The rest of such a line, after the prefix of Python's, absl's or loguru's logging.
_REST = _regex(
    rb"(?:[\w\s:.,/\[\]+|-]{0,60}?\b(?:INFO|DEBUG|WARNING)\b[\s:|\]-]*(?:[\w.<>:]+)?"
    rb"|[IWE]\d{4} [\d:.]+ +\d+ (?:[\w.]+:\d+\])?)?"
    rb"(?:[\s,;|:()\[\]\d/%.>=*-]|\b(?:", _OF, rb"|epoch|(?:global_)?step|iter(?:ation)?|batch)"
    rb"\b)*",
)  # fmt: skip
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_./@ -]{0,47}")
_WORD = re.compile(r"[A-Z]+(?![a-z])\d*|[A-Z]?[a-z]+\d*")
_MEASURE = re.compile(
    r"[a-z]*loss(?:es)?|acc|accuracy|auc|auroc|ap|bce|bleu|cer|dice|elbo|entropy|f1|fid|iou|mae|mape"
    r"|miou|mse|ndcg|nll|perplexity|ppl|psnr|r2|recall|reward|rmse|rmsle|rouge[1-9l]?|score|ssim|wer"
)
#: The last words of longer names: "val_error".
_MEASURE_BESIDE = re.compile(r"err|error|map|precision|return")
#: Words that make a name that of a setting: "loss_weight".
_SETTING = re.compile(
    r"alpha|beta|clip|coef|decay|eps|every|factor|freq|frequency|gamma|grad|interval|lambda|limit"
    r"|margin|patience|power|scale|smoothing|target|thr|threshold|weights?"
)
#: The last words of names that say where the training is, or describe the line.
_POSITION = re.compile(
    r"batch|epochs?|eta|flos|iters?|iterations?|lineno|num|pid|port|rank|runtime|seed|size|steps?"
    r"|time|timestamp|ts"
)


def printed_scalars(text: bytes, *, cut: bool = False, growing: bool = False) -> dict[str, float]:
    """Return name -> newest value of the scalars in ``text``.

    Parameters
    ----------
    cut
        ``text`` may begin within a line, which is ignored.
    growing
        More may follow in the last line: only a bar is read from it.
    """
    if b"\x1b" in text:
        text = _COLOUR.sub(b"", text)
    lines = _END.split(text)
    if cut:
        del lines[0]
    found: dict[str, float] = {}
    for number in _worth_parsing(lines):
        line = lines[number]
        if len(line) <= MAX_LINE and (b"=" in line or b":" in line):
            whole = number < len(lines) - 1 or not growing
            for name, value in _of_line(line, whole):
                key = name.decode("ascii", "replace")
                if _KEY.fullmatch(key) and not is_position(key):
                    found[key] = float(value)
    return found


def _worth_parsing(lines: list[bytes]) -> list[int]:
    """Return the numbers of the newest lines, and of the last of each form among the rest."""
    rest = len(lines) - MAX_LINES
    if rest <= 0:
        return list(range(len(lines)))
    forms = _VARIABLE.sub(b"0", b"\n".join(lines[:rest])).translate(None, _BAR_SIGNS)
    newest = dict(zip(forms.split(b"\n"), range(rest)))
    return [*sorted(newest.values())[-MAX_LINES:], *range(rest, len(lines))]


def is_measure(name: str) -> bool:
    """Return whether a scalar of this name tells how good a model is: ``val_loss``, ``mAP50``."""
    words = [word.lower() for word in _WORD.findall(name)]
    if is_position(name) or any(map(_SETTING.fullmatch, words)):
        return False
    plain = [word.rstrip("0123456789") for word in words]
    if len(words) > 1 and _MEASURE_BESIDE.fullmatch(plain[-1]):
        return True
    return any(map(_MEASURE.fullmatch, words + plain))


def is_loss(name: str) -> bool:
    """Return whether a scalar of this name is a loss, which must be a number.

    A best or smallest loss may be infinite before the first step.
    """
    words = [word.lower() for word in _WORD.findall(name)]
    return "loss" in name.lower() and is_measure(name) and not {"best", "min"} & set(words)


def is_position(name: str) -> bool:
    """Return whether a number of this name is no scalar of a model: ``global_step``."""
    words = _WORD.findall(name)
    return not words or _POSITION.fullmatch(words[-1].lower()) is not None


def _of_line(line: bytes, whole: bool) -> list[tuple[bytes, bytes]]:
    rank = _RANK.match(line)
    if rank is not None:
        line = line[rank.end() :]
    if b": " in line and _STEP.match(line):
        return _STEP_PAIR.findall(line)
    if len(line) <= MAX_BAR_LINE and (b"%|" in line or b"it [" in line):
        bar = _BAR.search(line)
        if bar is not None:
            described = line[: bar.start()].rstrip(b": ")
            found = _of_text(described) + _POSTFIX.findall(line, bar.start(), bar.end())
            # A message may follow the bar without an end of line.
            return found + (_of_message(line[bar.end() :]) if whole else [])
    return _of_message(line) if whole else []


def _of_message(line: bytes) -> list[tuple[bytes, bytes]]:
    line = line.rstrip()
    if line.endswith(b"}"):
        return _measured(list(_items(line)))
    trees = _TREES.fullmatch(line)
    if trees is not None:
        pairs = _TREES_PAIR.findall(trees.group(1))
        return [(name.replace(b"'s ", b"-"), value) for name, value in pairs]
    return _of_text(line)


def _items(line: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the numbers of a dictionary that ends the line; nothing if it is not flat."""
    found = []
    place = line.find(b"{") + 1
    while True:
        item = _ITEM.match(line, place)
        if item is None:
            return
        if item.group(3) is not None:
            found.append((item.group(2), item.group(3)))
        place = item.end()
        if item.group(4) == b"}":
            break
    if place == len(line):
        yield from found


def _of_text(line: bytes) -> list[tuple[bytes, bytes]]:
    if len(line) > MAX_TEXT_LINE or not (b"=" in line or b": " in line):
        return []
    pairs = _TEXT_PAIR.findall(line)
    if not pairs or not _REST.fullmatch(_OTHER_PAIR.sub(b" ", _TEXT_PAIR.sub(b" ", line))):
        return []
    return _measured([(name.replace(b" ", b"_"), value) for name, value in pairs])


def _measured(pairs: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return the pairs if one of them is a measure."""
    return pairs if any(is_measure(name.decode("ascii", "replace")) for name, _ in pairs) else []
