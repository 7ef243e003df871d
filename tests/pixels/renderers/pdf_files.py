"""PDFs for tests, harmless and hostile, written by hand."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

LETTER = "0 0 612 792"


def build_pdf(objects: Sequence[bytes], trailer: str = "") -> bytes:
    """Return a PDF of these objects, numbered from 1; the first is the catalog."""
    parts, offsets, at = [b"%PDF-1.7\n"], list[int](), 9
    for number, body in enumerate(objects, 1):
        piece = b"%d 0 obj\n%s\nendobj\n" % (number, body)
        offsets.append(at)
        parts.append(piece)
        at += len(piece)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size = len(objects) + 1
    end = f"trailer\n<</Size {size}/Root 1 0 R{trailer}>>\nstartxref\n{at}\n%%EOF\n".encode()
    return b"".join([*parts, b"xref\n0 %d\n0000000000 65535 f \n" % size, table, end])


def stream(content: bytes, entries: str = "") -> bytes:
    return f"<</Length {len(content)}{entries}>>stream\n".encode() + content + b"\nendstream"


def document(
    contents: Sequence[str | bytes],
    box: str = LETTER,
    *,
    catalog: str = "",
    page: str = "",
    resources: str = "",
    others: Sequence[bytes] = (),
    trailer: str = "",
) -> bytes:
    """Return a PDF with a page for each content stream. `others` are further objects, from number 4 on."""
    first = 4 + len(others)
    kids = " ".join(f"{first + 2 * at} 0 R" for at in range(len(contents)))
    objects = [
        f"<</Type/Catalog/Pages 2 0 R{catalog}>>".encode(),
        f"<</Type/Pages/Count {len(contents)}/Kids[{kids}]/MediaBox[{box}]>>".encode(),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        *others,
    ]
    for at, content in enumerate(contents):
        entries = f"/Resources<</Font<</F 3 0 R>>{resources}>>/Contents {first + 2 * at + 1} 0 R{page}"
        objects.append(f"<</Type/Page/Parent 2 0 R{entries}>>".encode())
        objects.append(stream(content.encode() if isinstance(content, str) else content))
    return build_pdf(objects, trailer)


def text(words: str, size: int = 24, x: int = 72, y: int = 600) -> str:
    return f"BT /F {size} Tf {x} {y} Td ({words}) Tj ET"


def fill(colour: str, box: str = "0 0 612 792") -> str:
    return f"{colour} rg {box} re f"


RED, GREEN, BLUE = "1 0 0", "0 1 0", "0 0 1"


def scan(words: Sequence[tuple[bytes, int, int]]) -> bytes:
    """Return a PDF whose pages are nothing but images: of each, the grey pixels, the width and the height."""
    images = [
        stream(
            zlib.compress(pixels),
            f"/Type/XObject/Subtype/Image/Width {width}/Height {height}/ColorSpace/DeviceGray/BitsPerComponent 8"
            "/Filter/FlateDecode",
        )
        for pixels, width, height in words
    ]
    names = "".join(f"/I{at} {4 + at} 0 R" for at in range(len(images)))
    contents = [f"612 0 0 792 0 0 cm /I{at} Do" for at in range(len(images))]
    return document(contents, resources=f"/XObject<<{names}>>", others=images)


def encrypted() -> bytes:
    """Return a PDF that opens with no password that anyone knows."""
    rights = f"<</Filter/Standard/V 1/R 2/Length 40/P -4/O<{'ab' * 32}>/U<{'cd' * 32}>>>"
    return document(
        [text("secret")], others=[rights.encode()], trailer=f"/Encrypt 4 0 R/ID[<{'00' * 16}><{'00' * 16}>]"
    )


def nested_forms(levels: int = 40) -> bytes:
    """Return a page that draws a form twice, which draws another one twice, and so on."""
    forms = []
    for level in range(levels):
        inner = f"/X {5 + level} 0 R" if level + 1 < levels else ""
        head = f"/Type/XObject/Subtype/Form/BBox[0 0 612 792]/Resources<</XObject<<{inner}>>>>"
        forms.append(stream(b"/X Do /X Do" if inner else b"0 0 9 9 re f", head))
    return document(["/X Do"], resources="/XObject<</X 4 0 R>>", others=forms)


def compressed_bomb() -> bytes:
    """Return a page whose content is 300 MB of path operators, compressed twice."""
    deflate = zlib.compressobj(9)
    piece = b"0 0 m 9 9 l\n" * 90_000
    once = b"".join(deflate.compress(piece) for _ in range(300)) + deflate.flush()
    head = "/Filter[/FlateDecode/FlateDecode]"
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count 1/Kids[3 0 R]/MediaBox[0 0 612 792]>>",
        b"<</Type/Page/Parent 2 0 R/Contents 4 0 R>>",
        stream(zlib.compress(once, 9), head),
    ]
    return build_pdf(objects)


def huge_image() -> bytes:
    """Return a page with an image that claims 60,000 x 60,000 pixels."""
    head = (
        "/Type/XObject/Subtype/Image/Width 60000/Height 60000/ColorSpace/DeviceRGB/BitsPerComponent 8"
        "/Filter[/FlateDecode/FlateDecode]"
    )
    image = stream(zlib.compress(zlib.compress(bytes(1 << 26), 9), 9), head)
    return document(["612 0 0 792 0 0 cm /I Do"], resources="/XObject<</I 4 0 R>>", others=[image])
