"""Draw office documents: with LibreOffice as they are printed, or by a layout of our own; and read their text.

In our own layout, headings, lists, tables, pictures, slides and sheets are there; fonts, columns, headers and the
places of things on a page are not.

LibreOffice converts a document to PDF, whose pages the PDF renderer draws. It runs isolated (`run_program`) with a
profile that exists for this one file: no macros, no links to other files. A worker checks all of a document first
(`check_office`). The CPU time that LibreOffice then gets depends on how much XML there is in the file, compressed:
hundreds of pages take a few seconds, and only a file that really is long gets more. What unpacks to a lot, or takes
long for another reason, is drawn by our own layout after a few seconds.
"""

from __future__ import annotations

import re
import socket
import stat
import sys
from pathlib import Path

from sightline.model.refusal import Refusal
from sightline.pixels.file_types import identify_file
from sightline.pixels.renderers.document_layout import FlowContent, lay_blocks, make_label, write_text
from sightline.pixels.renderers.office_archive import (
    DAMAGED_OFFICE,
    ENCRYPTED_OFFICE,
    OfficeArchive,
    OfficeRefusalError,
    check_office,
)
from sightline.pixels.renderers.open_document import read_open_document
from sightline.pixels.renderers.page_layout import draw_document
from sightline.pixels.renderers.pdf import PDF_RENDERER
from sightline.pixels.renderers.renderer import (
    ConvertedFile,
    InstalledProgram,
    RenderedDocument,
    Renderer,
    RenderOptions,
)
from sightline.pixels.renderers.run_program import FOLDER_URL, run_program
from sightline.pixels.renderers.text_fonts import FontLibrary, SystemFonts
from sightline.pixels.renderers.word_document import read_word
from sightline.pixels.renderers.workbook import read_presentation, read_workbook

LIBREOFFICE = InstalledProgram(
    ("soffice", "libreoffice", "/Applications/LibreOffice.app/Contents/MacOS/soffice"),
    "sudo apt-get install libreoffice-writer-nogui libreoffice-calc-nogui libreoffice-impress-nogui",
)
_OPEN_XML, _OPEN_DOCUMENT = "application/vnd.openxmlformats-officedocument", "application/vnd.oasis.opendocument"
OFFICE_MIMES = frozenset(
    {
        _OPEN_XML,
        f"{_OPEN_XML}.wordprocessingml.document",
        f"{_OPEN_XML}.spreadsheetml.sheet",
        f"{_OPEN_XML}.presentationml.presentation",
        *(f"{_OPEN_DOCUMENT}.{kind}" for kind in ("text", "spreadsheet", "presentation")),
    }
)
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED_PACKAGE = "EncryptedPackage".encode("utf-16-le")
_READERS = {"document": read_word, "presentation": read_presentation, "workbook": read_workbook}

_LEGACY = Refusal(
    "unsupported_type",
    "this is an office document of an old format, such as doc, xls or ppt, which Sightline does not open",
    "convert it, for example with: soffice --headless --convert-to pdf FILE",
)
_NOT_OFFICE = Refusal(
    "unsupported_type",
    "this is an archive, but not a Word, Excel, PowerPoint or OpenDocument file that can be read",
    "save it as PDF",
)


def render_office(data: bytes, options: RenderOptions) -> RenderedDocument | Refusal:
    """Draw pages of an office document."""
    content = read_office(data)
    if isinstance(content, Refusal):
        return content
    fonts = FontLibrary()
    content.cut()
    blocks = content.blocks or [make_label("This document is empty.")]
    return draw_document(lay_blocks(blocks, fonts), options, fonts, ", ".join(content.notes))


def read_office_text(data: bytes) -> str | Refusal:
    """Return the text of an office document."""
    content = read_office(data)
    return content if isinstance(content, Refusal) else write_text(content)


def read_office(data: bytes) -> FlowContent | Refusal:
    """Return the content of an office document of any kind."""
    if data.startswith(_OLE):
        return ENCRYPTED_OFFICE if _ENCRYPTED_PACKAGE in data else _LEGACY
    content = FlowContent()
    try:
        archive = OfficeArchive(data)
        if archive.has("content.xml"):
            read_open_document(archive, content)
        elif refusal := _read_open_xml(archive, content):
            return refusal
    except OfficeRefusalError as error:
        return error.refusal
    if archive.is_cut:
        content.add_note("too large: only its beginning is read")
    return content


def _read_open_xml(archive: OfficeArchive, content: FlowContent) -> Refusal | None:
    """Read the main part of an Office Open XML file, which its root element tells apart."""
    parts = archive.read_relations("")
    mains = [each for each in parts.values() if archive.has(each) and each.endswith(".xml") and "docProps" not in each]
    for main in mains:
        root = archive.parse(main)
        if root is not None and root.name in _READERS:
            _READERS[root.name](archive, main, root, content)
            return None
    return _NOT_OFFICE if archive.has("[Content_Types].xml") or not mains else DAMAGED_OFFICE


OFFICE_RENDERER = Renderer(
    "office",
    revision=2,
    mimes=OFFICE_MIMES | {"application/x-ole-storage"},
    render=render_office,
    read_text=read_office_text,
    options=frozenset({"page"}),
    needs=(SystemFonts(),),
    note=f"the layout is approximate; to see pages as they are printed, run: {LIBREOFFICE.install}",
)


_SECONDS, _MORE_SECONDS, _MAX_SECONDS = 6.0, 12.0, 30.0  # of CPU time: for any file, more for each MiB of XML, at most
_BUSY_SECONDS = 14.0  # more may pass on a busy machine
_MEMORY = 2 * 1024 * 1024 * 1024
_FOLDERS = ("/etc/libreoffice", "/var/lib/libreoffice", "/var/spool/libreoffice")  # of Debian's packages
# LibreOffice makes a socket here to talk to itself, whatever TMPDIR says, and waits forever if it can't.
_SOCKET_FOLDER = "/tmp"  # noqa: S108
_SOCKET_NAMES = "OSL_PIPE_*_SingleOfficeIPC_*", "OSL_PIPE_SingleOfficeIPC_*"
_PROFILE = "profile/user"
_BUILD_ID = re.compile(rb"^buildid=(.*?)\s*$", re.MULTILINE)
_SUFFIXES = {"document": "docx", "sheet": "xlsx", "presentation": "pptx"}
_SETTINGS = (
    ("Common/Security/Scripting", "MacroSecurityLevel", "3"),
    ("Common/Security/Scripting", "DisableMacrosExecution", "true"),
    ("Common/Security/Scripting", "DisableActiveContent", "true"),
    ("Common/Security/Scripting", "BlockUntrustedRefererLinks", "true"),
    ("Writer/Content/Update", "Link", "0"),
    ("Calc/Content/Update", "Link", "2"),
    ("Common/Misc", "FirstRun", "false"),
)


def convert_office(data: bytes, options: RenderOptions) -> ConvertedFile | Refusal:
    """Return an office document as PDF."""
    try:
        packed = OfficeArchive(data).count_packed_bytes()
    except OfficeRefusalError as error:
        return error.refusal
    seconds = min(_MAX_SECONDS, _SECONDS + _MORE_SECONDS * packed / 2**20)
    name = f"source.{_choose_suffix(identify_file(data[:4096]).mime)}"
    profile = f"-env:UserInstallation={FOLDER_URL}/profile"
    program = LIBREOFFICE.find_path() or LIBREOFFICE.names[0]
    files = {name: data, f"{_PROFILE}/registrymodifications.xcu": _write_settings()}
    made = run_program(
        [program, profile, "--headless", "--norestore", "--nologo", "--convert-to", "pdf", name],
        files | {f"{_PROFILE}/extensions/buildid": _read_build_id(program)},
        "source.pdf",
        title="LibreOffice",
        seconds=seconds + _BUSY_SECONDS,
        cpu_seconds=seconds,
        memory=_MEMORY,
        readable=_FOLDERS,
        socket_folders=(_SOCKET_FOLDER,),
    )
    _remove_stale_sockets()
    return made if isinstance(made, Refusal) else ConvertedFile(made)


def _choose_suffix(mime: str) -> str:
    kind = mime.rpartition(".")[2]
    if "opendocument" in mime:
        return {"text": "odt", "spreadsheet": "ods"}.get(kind, "odp")
    return _SUFFIXES.get(kind, "docx")


def _read_build_id(program: str) -> bytes:
    """Return which LibreOffice this is. With this in its profile, it does not begin by starting itself again."""
    try:
        found = _BUILD_ID.search(Path(program).resolve().with_name("versionrc").read_bytes())
    except OSError:
        return b""
    return found[1] if found else b""


def _write_settings() -> bytes:
    items = "".join(
        f'<item oor:path="/org.openoffice.Office.{path}">'
        f'<prop oor:name="{name}" oor:op="fuse"><value>{value}</value></prop></item>'
        for path, name, value in _SETTINGS
    )
    space = 'xmlns:oor="http://openoffice.org/2001/registry"'
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<oor:items {space}>{items}</oor:items>\n'.encode()


def _remove_stale_sockets() -> None:
    """Remove the sockets of LibreOffice that no process listens on: it may not delete its own."""
    if sys.platform == "win32":
        return
    for pattern in _SOCKET_NAMES:
        for path in Path(_SOCKET_FOLDER).glob(pattern):
            try:
                if stat.S_ISSOCK(path.lstat().st_mode) and not _is_served(path):
                    path.unlink()
            except OSError:
                continue


def _is_served(path: Path) -> bool:
    if sys.platform == "win32":
        return True
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(1)
        try:
            client.connect(str(path))
        except ConnectionRefusedError:
            return False
        except OSError:
            return True
    return True


LIBREOFFICE_RENDERER = Renderer(
    "libreoffice",
    revision=1,
    mimes=OFFICE_MIMES,
    convert=convert_office,
    check=check_office,
    page_renderer=PDF_RENDERER,
    read_text=read_office_text,
    options=frozenset({"page", "width"}),
    needs=(LIBREOFFICE,),
)
