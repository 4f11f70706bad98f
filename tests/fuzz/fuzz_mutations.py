"""Damage to files: what disks, editors, other programs and people who mean harm do to them."""

import gzip
import io
import re
import struct
import zipfile
from random import Random

NASTY_BYTES = (
    b"", b"\0", b"\xff", b"\xe4", b"\xef\xbb\xbf", b"\xff\xfe", b"\r", b"\n", b"\n\n", b'"', b'""',
    b",", b";", b"\t", b" ", b"'", b"/", b"../", b"|", b"\x1a", b"\xc2\xa0", b"\xe2\x80\xa8",
)  # fmt: skip
NASTY_WORDS = (
    b"nan", b"inf", b"-inf", b"1e999", b"-1", b"0", b"1_0", b"0x10", b"1,5", b"1e-400", b"true",
    b"null", b"None", b"'false'", b"99999999999999999999", b"-0", b"\xd9\xa1", b"[]", b"{}", b'""',
    b"\\ud800", b"2147483648", b"target", b"f", b"*a", b"&a", b"!!python/name:os.system",
)  # fmt: skip
NASTY_NUMBERS = (0, 1, -1, 2**31 - 1, -(2**31), 2**16, 255, 2**24, 80, 16_000)


def mutate(data: bytes, random: Random, kind: str) -> bytes:
    """Damage ``data`` once or a few times; ``kind`` is text, binary, zip or gzip.

    Archives are damaged as they are, or inside and packed again with the right checksums.
    """
    if kind == "zip" and random.random() < 0.7:
        return _inside_zip(data, random)
    if kind == "gzip":
        if random.random() < 0.7:
            return gzip.compress(mutate(gzip.decompress(data), random, "text"), mtime=0)
        kind = "binary"
    tools = _TEXT if kind == "text" else _BINARY
    for _ in range(random.choice((1, 1, 1, 2, 2, 4))):
        data = random.choice(tools)(data, random)
    return data


def _inside_zip(data: bytes, random: Random) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    name = random.choice(list(members))
    match random.randrange(8):
        case 0:
            del members[name]
        case 1:
            members[name + random.choice(("x", ".npy", "/../x"))] = members.pop(name)
        case 2:
            members[random.choice(list(members))] = members[name]
        case _:
            members[name] = mutate(members[name], random, "binary")
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", random.choice((zipfile.ZIP_STORED, 8))) as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    return out.getvalue()


def _place(data: bytes, random: Random) -> int:
    """Anywhere, but the beginning and the end (headers, footers) more often."""
    where = random.randrange(len(data) + 1)
    return random.choice((where, min(where, 128), max(0, len(data) - 1 - where % 128), where))


def _flip(data: bytes, random: Random) -> bytes:
    if not data:
        return data
    at = min(_place(data, random), len(data) - 1)
    return data[:at] + bytes([data[at] ^ (1 << random.randrange(8))]) + data[at + 1 :]


def _byte(data: bytes, random: Random) -> bytes:
    at = _place(data, random)
    return data[:at] + bytes([random.randrange(256)]) + data[at + 1 :]


def _delete(data: bytes, random: Random) -> bytes:
    at = _place(data, random)
    return data[:at] + data[at + random.choice((1, 2, 4, 8, 100)) :]


def _double(data: bytes, random: Random) -> bytes:
    at, size = _place(data, random), random.choice((1, 4, 16, 200))
    return data[: at + size] + data[at:]


def _insert(data: bytes, random: Random) -> bytes:
    at = _place(data, random)
    return data[:at] + random.choice((*NASTY_BYTES, random.randbytes(8))) + data[at:]


def _cut(data: bytes, random: Random) -> bytes:
    return data[: random.choice((_place(data, random), 0, max(0, len(data) - 1)))]


def _swap(data: bytes, random: Random) -> bytes:
    a, b = sorted((_place(data, random), _place(data, random)))
    return data[b:] + data[a:b] + data[:a]


def _number(data: bytes, random: Random) -> bytes:
    """Another number of 1, 2, 4 or 8 bytes where a header may have one."""
    size = random.choice((1, 2, 4, 8))
    value = random.choice(NASTY_NUMBERS) % 2 ** (8 * size)
    at = _place(data, random)
    at -= random.choice((0, at % size))
    return data[:at] + value.to_bytes(size, random.choice(("little", "big"))) + data[at + size :]


def _float(data: bytes, random: Random) -> bytes:
    at = _place(data, random) // 4 * 4
    value = random.choice((float("nan"), float("inf"), 0.0, 1e38, -1.0))
    return data[:at] + struct.pack("<f", value) + data[at + 4 :]


def _zeros(data: bytes, random: Random) -> bytes:
    at, size = _place(data, random), random.choice((4, 64, 512))
    return data[:at] + bytes(len(data[at : at + size])) + data[at + size :]


def _digits(data: bytes, random: Random) -> bytes:
    """Another number in text, also in the text of a binary header."""
    found = list(re.finditer(rb"-?\d+(?:\.\d+)?", data))
    if not found:
        return data
    spot = random.choice(found)
    return data[: spot.start()] + random.choice(NASTY_WORDS) + data[spot.end() :]


def _comma(data: bytes, random: Random) -> bytes:
    spots = [m.start() for m in re.finditer(rb"(?<=\d)\.(?=\d)", data)]
    return _put(data, spots, b",", random)


def _underscore(data: bytes, random: Random) -> bytes:
    spots = [m.start() for m in re.finditer(rb"(?<=\d)(?=\d)", data)]
    at = random.choice(spots) if spots else 0
    return data[:at] + b"_" + data[at:]


def _separator(data: bytes, random: Random) -> bytes:
    old, new = random.sample((b",", b";", b"\t", b" ", b":", b"\n", b"\r\n"), 2)
    if random.random() < 0.3:
        return data.replace(old, new)
    return _put(data, [m.start() for m in re.finditer(re.escape(old), data)], new, random)


def _put(data: bytes, spots: list[int], new: bytes, random: Random) -> bytes:
    at = random.choice(spots) if spots else len(data)
    return data[:at] + new + data[at + 1 :]


def _lines(data: bytes, random: Random) -> bytes:
    """Lines lost, doubled, swapped or joined, as editors and merges do."""
    lines = data.splitlines(keepends=True)
    if len(lines) < 2:
        return data
    a, b = random.randrange(len(lines)), random.randrange(len(lines))
    match random.randrange(5):
        case 0:
            del lines[a]
        case 1:
            lines.insert(b, lines[a])
        case 2:
            lines[a], lines[b] = lines[b], lines[a]
        case 3:
            lines[a] = lines[a].rstrip(b"\r\n")
        case _:
            cells = re.split(rb"(,|\t| )", lines[a])
            spot = random.randrange(len(cells))
            cells[spot : spot + 1] = random.choice(([], [cells[spot]] * 2, [b"x"], [b'"']))
            lines[a] = b"".join(cells)
    return b"".join(lines)


def _word(data: bytes, random: Random) -> bytes:
    found = list(re.finditer(rb"[\w.-]+", data))
    if not found:
        return data
    spot = random.choice(found)
    other = random.choice((*NASTY_WORDS, random.choice(found)[0], spot[0].upper(), spot[0] + b"x"))
    return data[: spot.start()] + other + data[spot.end() :]


def _encoding(data: bytes, random: Random) -> bytes:
    text = data.decode("utf-8", "replace")
    coding = random.choice(("utf-16", "utf-8-sig", "utf-32", "latin-1", "utf-16-le"))
    return (text + random.choice(("", "ä"))).encode(coding, "replace")


def _nest(data: bytes, random: Random) -> bytes:
    at = _place(data, random)
    return data[:at] + random.choice((b"[", b'{"a":', b"- ", b"(")) * 5000 + data[at:]


_BINARY = (
    _flip, _byte, _delete, _double, _insert, _cut, _swap, _number, _number, _float, _zeros, _digits,
)  # fmt: skip
_TEXT = (
    _flip, _byte, _delete, _double, _insert, _cut, _swap, _digits, _digits, _comma, _underscore,
    _separator, _lines, _lines, _lines, _word, _word, _encoding, _nest,
)  # fmt: skip
