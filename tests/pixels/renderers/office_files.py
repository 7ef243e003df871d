"""Office documents for tests, made of the few parts that a reader needs."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from io import BytesIO

from tests.pixels.bitmaps import flag, saved

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
P = 'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
S = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
O = " ".join(  # noqa: E741, short as the others
    f'xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for short, name in {
        "office": "office",
        "text": "text",
        "table": "table",
        "draw": "drawing",
        "style": "style",
        "fo": "xsl-fo-compatible",
        "presentation": "presentation",
    }.items()
)
OPEN_DOCUMENT = "application/vnd.oasis.opendocument"
PICTURE = saved(flag(40, 30), "image/png")


def pack(parts: Mapping[str, str | bytes]) -> bytes:
    """Return an archive of these parts, in their order."""
    file = BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data, zipfile.ZIP_STORED if name == "mimetype" else None)
    return file.getvalue()


def relate(**targets: str) -> str:
    """Return the relations of a part."""
    links = "".join(f'<Relationship Id="{name}" Target="{target}"/>' for name, target in targets.items())
    return f"<Relationships>{links}</Relationships>"


def open_xml(main: str, text: str, parts: Mapping[str, str | bytes] | None = None) -> bytes:
    """Return an Office Open XML file with a main part and others."""
    head = {"[Content_Types].xml": "<Types/>", "_rels/.rels": relate(rId1=main)}
    return pack({**head, main: text, **(parts or {})})


def docx(body: str, parts: Mapping[str, str | bytes] | None = None) -> bytes:
    return open_xml("word/document.xml", f"<w:document {W} {A} {R}><w:body>{body}</w:body></w:document>", parts)


def paragraph(text: str, properties: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def table(*rows: list[str]) -> str:
    cells = ("".join(f"<w:tc>{cell}</w:tc>" for cell in row) for row in rows)
    return "<w:tbl>" + "".join(f"<w:tr>{row}</w:tr>" for row in cells) + "</w:tbl>"


def pptx(*slides: str) -> bytes:
    """Return slides; each is what its tree of shapes has."""
    ids = "".join(f'<p:sldId id="{256 + at}" r:id="rId{at}"/>' for at in range(len(slides)))
    parts: dict[str, str | bytes] = {
        "ppt/_rels/presentation.xml.rels": relate(**{f"rId{at}": f"slides/slide{at}.xml" for at in range(len(slides))}),
        "ppt/media/image1.png": PICTURE,
    }
    for at, shapes in enumerate(slides):
        tree = f"<p:cSld><p:spTree>{shapes}</p:spTree></p:cSld>"
        parts[f"ppt/slides/slide{at}.xml"] = f"<p:sld {P} {A} {R}>{tree}</p:sld>"
        parts[f"ppt/slides/_rels/slide{at}.xml.rels"] = relate(rId9="../media/image1.png")
    text = f"<p:presentation {P} {R}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>"
    return open_xml("ppt/presentation.xml", text, parts)


def shape(text: str, kind: str = "body") -> str:
    place = f'<p:nvSpPr><p:nvPr><p:ph type="{kind}"/></p:nvPr></p:nvSpPr>'
    return f"<p:sp>{place}<p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"


def xlsx(
    sheets: Mapping[str, str],
    strings: list[str] | None = None,
    styles: str = "",
    parts: Mapping[str, str | bytes] | None = None,
) -> bytes:
    """Return a workbook; each sheet is what its data has."""
    names = list(sheets)
    listed = "".join(f'<sheet name="{name}" sheetId="{at}" r:id="rId{at}"/>' for at, name in enumerate(names, 1))
    shared = "".join(f"<si><t>{text}</t></si>" for text in strings or [])
    own: dict[str, str | bytes] = {
        "xl/_rels/workbook.xml.rels": relate(
            **{f"rId{at}": f"worksheets/sheet{at}.xml" for at in range(1, len(names) + 1)}
        ),
        "xl/sharedStrings.xml": f"<sst {S}>{shared}</sst>",
        "xl/styles.xml": f"<styleSheet {S}>{styles}</styleSheet>",
    }
    for at, name in enumerate(names, 1):
        own[f"xl/worksheets/sheet{at}.xml"] = f"<worksheet {S}><sheetData>{sheets[name]}</sheetData></worksheet>"
    return open_xml(
        "xl/workbook.xml", f"<workbook {S} {R}><sheets>{listed}</sheets></workbook>", {**own, **(parts or {})}
    )


def open_document(kind: str, body: str, styles: str = "", parts: Mapping[str, str | bytes] | None = None) -> bytes:
    """Return an OpenDocument file: text, spreadsheet or presentation."""
    content = f"<office:document-content {O} xmlns:xlink='http://www.w3.org/1999/xlink'>"
    content += f"<office:automatic-styles>{styles}</office:automatic-styles>"
    content += f"<office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>"
    return pack({"mimetype": f"{OPEN_DOCUMENT}.{kind}", "content.xml": content, **(parts or {})})
