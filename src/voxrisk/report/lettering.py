"""How much room words take in a picture that is laid out before any font is known.

The widths are those of Arial and its kin with room to spare: the wider DejaVu Sans fits too.
"""

TICK, TITLE = 11.0, 11.5  # sizes of text, as in the pages' style
_EMS = {
    **dict.fromkeys("ijl.,:;'|! ", 0.28),
    **dict.fromkeys("frtI()[]-/\u00a0", 0.33),
    **dict.fromkeys("mwMW%@", 0.87),
}


def text_width(words: str, size: float, *, bold: bool = False) -> float:
    """About how wide words are in a sans-serif font: rather too much than too little.

    >>> round(text_width("100 %", 11)), text_width("", 11)
    (34, 0.0)
    """
    return (1.3 if bold else 1.1) * size * sum(_em(sign) for sign in words)


def wrap(words: str, size: float, width: float, *, bold: bool = False) -> list[str]:
    """Words in lines that are not wider than ``width``; a longer word is cut into pieces.

    >>> wrap("informed (VoicePrivacy: semi-informed)", 11.5, 150)
    ['informed (VoicePrivacy:', 'semi-informed)']
    >>> wrap("M" * 12, 10, 70)
    ['MMMMMMM', 'MMMMM']
    """
    lines: list[str] = []
    for word in words.split(" "):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, size, bold=bold) <= width:
            lines[-1] = longer
            continue
        lines.append("")
        for sign in word:
            if lines[-1] and text_width(lines[-1] + sign, size, bold=bold) > width:
                lines.append("")
            lines[-1] += sign
    return lines


def _em(sign: str) -> float:
    if sign in _EMS:
        return _EMS[sign]
    if ord(sign) >= 0x2E80:  # Chinese, Japanese, Korean
        return 1.0
    return 0.7 if sign.isupper() else 0.56
