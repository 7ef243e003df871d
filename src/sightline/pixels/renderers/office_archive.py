"""Read the parts of an office document: a ZIP archive of XML and pictures that are not trusted.

Nothing is unpacked to a disk. Each part is read up to a limit, whatever size its header claims; an archive with too
many parts, with parts that unpack to hundreds of times their size, or with names that lead out of it, is refused. XML
that declares entities is refused, because office documents have none. A document that has more elements than can be
drawn is cut.

Before an office suite gets a document, `check_office` reads all of it: programs unpack everything, and have no limits.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from xml.parsers import expat

from sightline.model.refusal import Refusal

_MAX_PARTS = 20_000
_MAX_TOTAL_BYTES = 512 * 1024 * 1024  # of all parts, as their headers say
_MAX_RATIO, _RATIO_BYTES = 250, 16 * 1024 * 1024  # how far a part of so many bytes may be compressed
_MAX_PART_BYTES = 96 * 1024 * 1024
_MAX_PICTURE_BYTES = 24 * 1024 * 1024
_MAX_ELEMENTS = 300_000  # of a whole document
_MAX_DEPTH = 250
_MAX_PROGRAM_ELEMENTS, _MAX_PROGRAM_XML = 1_000_000, 64 * 1024 * 1024  # that an office suite can convert in time
_MAX_PROGRAM_CELLS = 400_000
_MAX_PROGRAM_RATIO, _PROGRAM_RATIO_BYTES = (
    100,
    4 * 1024 * 1024,
)  # as above, of all XML; that of real documents: 10 to 40
_MAX_SHEET_ROWS, _MAX_SHEET_COLUMNS = 100_000, 1_000  # in which an office suite looks for cells to print
_CHUNK = 256 * 1024
_ENCRYPTED_BIT = 1
_XML_SUFFIXES = (".xml", ".rels", ".rdf", ".vml")
_UNKNOWN_ENCODING = (LookupError, ValueError)  # from pyexpat
_PLACE = re.compile(r"([A-Z]{1,3})(\d{1,7})")

DAMAGED_OFFICE = Refusal("corrupt", "the office document is damaged", "give an undamaged copy")
ENCRYPTED_OFFICE = Refusal(
    "unsupported_type", "the office document is encrypted and needs a password", "save a copy without a password"
)
_TOO_MANY = Refusal("too_large", "the office document unpacks to too much", "give a smaller one, or save it as PDF")
_FOREIGN_NAMES = Refusal("corrupt", "the office document has parts outside of itself", "give an undamaged copy")
_TOO_MUCH = Refusal("too_large", "LibreOffice needs too much time for so much content", "give a smaller one")
_ENTITIES = Refusal("corrupt", "the office document declares entities, which none may", "save it again, or as PDF")


class OfficeRefusalError(Exception):
    """A part of a document that cannot be read; carries the refusal of the whole document."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal


@dataclass(slots=True)
class XmlNode:
    """An element. Names are without their namespaces, which differ between versions of the formats."""

    name: str
    attributes: dict[str, str]
    children: list[XmlNode | str] = field(default_factory=list)

    def find(self, *path: str) -> XmlNode | None:
        """Return the first element at a path of names below this one, or None."""
        node: XmlNode | None = self
        for name in path:
            node = next((each for each in node.list() if each.name == name), None) if node else None
        return node

    def list(self, name: str = "") -> Iterator[XmlNode]:
        """Yield the child elements, or those of a name."""
        return (each for each in self.children if isinstance(each, XmlNode) and (not name or each.name == name))

    def walk(self, *names: str) -> Iterator[XmlNode]:
        """Yield all elements of these names below this one, in order."""
        for each in self.list():
            if each.name in names:
                yield each
            yield from each.walk(*names)

    def get(self, name: str, default: str = "") -> str:
        return self.attributes.get(name, default)

    def read_text(self) -> str:
        """Return all text below this element."""
        return "".join(each if isinstance(each, str) else each.read_text() for each in self.children)


class OfficeArchive:
    """The parts of a document by their names."""

    def __init__(self, data: bytes) -> None:
        """Open an archive; raise `OfficeRefusalError` if it is damaged, hostile or encrypted."""
        try:
            self._archive = zipfile.ZipFile(BytesIO(data))
        except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError, RecursionError) as error:
            raise OfficeRefusalError(DAMAGED_OFFICE) from error
        refusal = _check_parts(self._archive.infolist())
        if refusal is not None:
            raise OfficeRefusalError(refusal)
        self._elements = 0
        self.is_cut = False  # whether there is more than was read

    def has(self, name: str) -> bool:
        return name in self._archive.NameToInfo

    def read_picture(self, name: str) -> bytes:
        """Return the bytes of a picture; empty: there is none, or it is too large."""
        data = b"".join(self._read_chunks(name, _MAX_PICTURE_BYTES))
        return data if len(data) <= _MAX_PICTURE_BYTES else b""

    def parse(self, name: str) -> XmlNode | None:
        """Return the root of an XML part, as far as the limits allow; None: there is no such part."""
        return self._parse(name) if self.has(name) else None

    def count_packed_bytes(self) -> int:
        """Return how many bytes the XML has in the file, compressed."""
        return sum(each.compress_size for each in self._archive.infolist() if _is_xml(each.filename))

    def check(self) -> None:
        """Read all parts; raise `OfficeRefusalError` if one is hostile or damaged, or has too much for a program."""
        count = _ContentCount(max(_PROGRAM_RATIO_BYTES, self.count_packed_bytes() * _MAX_PROGRAM_RATIO))
        for part in self._archive.infolist():
            parser = count.make_parser() if _is_xml(part.filename) else None
            for chunk in self._read_chunks(part.filename, _MAX_TOTAL_BYTES):
                parser = parser and count.add(parser, chunk)

    def read_relations(self, name: str) -> dict[str, str]:
        """Return the parts that a part refers to, by the ids that it uses; addresses outside the file are left out."""
        folder, file = posixpath.split(name)
        root = self.parse(posixpath.join(folder, "_rels", f"{file}.rels"))
        links = root.list("Relationship") if root else ()
        inner = (each for each in links if each.get("TargetMode") != "External")
        return {each.get("Id"): resolve_part(folder, each.get("Target")) for each in inner}

    def _read_chunks(self, name: str, limit: int) -> Iterator[bytes]:
        if not self.has(name):
            return
        total = 0
        try:
            with self._archive.open(name) as file:
                while total <= limit and (chunk := file.read(_CHUNK)):
                    total += len(chunk)
                    yield chunk
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError) as error:
            raise OfficeRefusalError(DAMAGED_OFFICE) from error
        self.is_cut = self.is_cut or total > limit

    def _parse(self, name: str) -> XmlNode | None:
        builder = _TreeBuilder(_MAX_ELEMENTS - self._elements)
        try:
            for chunk in self._read_chunks(name, _MAX_PART_BYTES):
                builder.feed(chunk)
                if builder.is_full:
                    break
            else:
                builder.finish(is_whole=not self.is_cut)
        except (expat.ExpatError, *_UNKNOWN_ENCODING) as error:
            raise OfficeRefusalError(DAMAGED_OFFICE) from error
        self._elements += builder.count
        self.is_cut = self.is_cut or builder.is_full
        if builder.root is None and builder.is_full:
            return None  # other parts had all the elements that may be read
        if builder.root is None:
            raise OfficeRefusalError(DAMAGED_OFFICE)
        return builder.root


class _TreeBuilder:
    """Builds a tree of elements, until there are too many of them."""

    def __init__(self, room: int) -> None:
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._add_text
        self._parser.StartDoctypeDeclHandler = refuse_entities
        self._stack: list[XmlNode] = []
        self._room = room
        self.root: XmlNode | None = None
        self.count = 0
        self.is_full = False

    def feed(self, chunk: bytes) -> None:
        self._parser.Parse(chunk)

    def finish(self, *, is_whole: bool) -> None:
        if is_whole:
            self._parser.Parse(b"", bool(is_whole))

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self.count += 1
        if self.count > self._room:
            self.is_full = True
            return
        node = XmlNode(_drop_namespace(tag), _drop_namespaces(attributes))
        if len(self._stack) >= _MAX_DEPTH:
            raise OfficeRefusalError(_TOO_MANY)
        if self._stack:
            self._stack[-1].children.append(node)
        else:
            self.root = node
        self._stack.append(node)

    def _end(self, tag: str) -> None:
        if not self.is_full:
            self._stack.pop()

    def _add_text(self, text: str) -> None:
        if self._stack and not self.is_full:
            self._stack[-1].children.append(text)


def refuse_entities(name: str, system: str | None, public: str | None, has_declarations: int) -> None:
    """Raise the refusal of a part that declares entities. Some OpenDocument parts have a type without declarations."""
    if has_declarations:
        raise OfficeRefusalError(_ENTITIES)


class _ContentCount:
    """Counts what is in all XML of a document, and raises the refusal of one that has too much."""

    def __init__(self, max_bytes: int) -> None:
        self._room = min(max_bytes, _MAX_PROGRAM_XML)
        self._elements = self._cells = self._depth = self._column = 0
        self._rows = self._columns = 1  # that a row or cell of an OpenDocument sheet stands for

    def make_parser(self) -> expat.XMLParserType:
        self._depth = 0
        parser = expat.ParserCreate()
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.StartDoctypeDeclHandler = refuse_entities
        return parser

    def add(self, parser: expat.XMLParserType, chunk: bytes) -> expat.XMLParserType | None:
        """Read a piece of a part, and return the parser; None: the part isn't XML from there on, for any program."""
        self._room -= len(chunk)
        if self._room < 0:
            raise OfficeRefusalError(_TOO_MUCH)
        try:
            parser.Parse(chunk)
        except expat.ExpatError:
            return None
        except _UNKNOWN_ENCODING as error:  # which another program may know
            raise OfficeRefusalError(DAMAGED_OFFICE) from error
        return parser

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._elements += 1
        self._depth += 1
        name = tag.rpartition(":")[2]
        self._count_cell(name, attributes)
        if self._depth > _MAX_DEPTH:
            raise OfficeRefusalError(_TOO_MANY)
        if self._elements > _MAX_PROGRAM_ELEMENTS or self._cells > _MAX_PROGRAM_CELLS:
            raise OfficeRefusalError(_TOO_MUCH)

    def _end(self, tag: str) -> None:
        self._depth -= 1
        if tag.endswith(":table-row"):
            self._rows = self._columns = 1
        elif tag.endswith(":table-cell"):
            self._columns = 1

    def _count_cell(self, name: str, attributes: dict[str, str]) -> None:
        """Count a cell of an Excel sheet, and a paragraph of a repeated cell of an OpenDocument sheet."""
        match name:
            case "row":
                self._column = 0
            case "c":
                self._column += "r" not in attributes  # which is also in lists of formulas
                self._cells += 1
                if self._column > _MAX_SHEET_COLUMNS or not _is_near(attributes.get("r", "")):
                    raise OfficeRefusalError(_TOO_MUCH)
            case "table-row":
                self._rows = _read_count(attributes, "table:number-rows-repeated")
            case "table-cell":
                self._columns = _read_count(attributes, "table:number-columns-repeated")
            case "p":
                self._cells += self._rows * self._columns


def check_office(data: bytes) -> Refusal | None:
    """Return why an office suite must not get a document, or None."""
    try:
        OfficeArchive(data).check()
    except OfficeRefusalError as error:
        return error.refusal
    return None


def resolve_part(folder: str, target: str) -> str:
    """Return the name of a part from a reference to it: relative to a folder, or to the archive if it is absolute."""
    return posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")


def _read_count(attributes: dict[str, str], name: str) -> int:
    count = attributes.get(name, "")
    return int(count) if count.isdecimal() and len(count) < 12 else 1


def _is_xml(name: str) -> bool:
    return name.lower().endswith(_XML_SUFFIXES)


def _is_near(place: str) -> bool:
    """Return whether a cell, such as AB12, is within the part of a sheet that is printed in time."""
    found = _PLACE.fullmatch(place)
    column = 0
    for letter in found[1] if found else "":
        column = column * 26 + ord(letter) - 64
    return column <= _MAX_SHEET_COLUMNS and (not found or int(found[2]) <= _MAX_SHEET_ROWS)


def _drop_namespace(name: str) -> str:
    return name.rpartition(" ")[2]


def _drop_namespaces(attributes: dict[str, str]) -> dict[str, str]:
    """Return attributes by their short names. Where `id` and `r:id` are both there, the latter is what is meant."""
    short = {name: value for name, value in attributes.items() if " " not in name}
    return short | {_drop_namespace(name): value for name, value in attributes.items() if " " in name}


def _check_parts(parts: list[zipfile.ZipInfo]) -> Refusal | None:
    if len(parts) > _MAX_PARTS or sum(each.file_size for each in parts) > _MAX_TOTAL_BYTES:
        return _TOO_MANY
    if any(each.file_size > max(_RATIO_BYTES, each.compress_size * _MAX_RATIO) for each in parts):
        return _TOO_MANY
    if any(each.flag_bits & _ENCRYPTED_BIT for each in parts):
        return ENCRYPTED_OFFICE
    names = (each.filename.replace("\\", "/") for each in parts)
    if any(name.startswith("/") or ".." in name.split("/") or name[1:2] == ":" for name in names):
        return _FOREIGN_NAMES
    return None
