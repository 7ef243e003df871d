"""File types: each is identified by its first bytes."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.pixels.file_types import FileType, identify_file
from tests.pixels.bitmaps import FORMATS, RED, flag, icon_of, psd_of, saved
from tests.requirements import requirement


def zipped(*names: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, "<?xml version='1.0'?><a>" + "some words " * 50)
    return file.getvalue()


def open_document(mime: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("mimetype", mime)
        archive.writestr("content.xml", "<a/>")
    return file.getvalue()


def tarred() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a.png"))
    return file.getvalue()


OFFICE = ("[Content_Types].xml", "_rels/.rels")
WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
EXCEL = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
POWERPOINT = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
ODT = "application/vnd.oasis.opendocument.text"

FILES: list[tuple[bytes, str, str]] = [
    *((saved(flag(9, 9), mime), mime, "bitmap") for mime in FORMATS),
    (icon_of({16: RED}, "bmp"), "image/x-icon", "bitmap"),
    (psd_of(flag(9, 9)), "image/vnd.adobe.photoshop", "bitmap"),
    (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "image/heic", "bitmap"),
    (b"\xff\x0a\xfa\x7f", "image/jxl", "bitmap"),
    (b"\0\0\0\x0cjP  \r\n\x87\n", "image/jp2", "bitmap"),
    (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml", "vector"),
    (b"<?xml version='1.0'?>\n<!-- <html> -->\n<svg:svg/>", "image/svg+xml", "vector"),
    (b"<!DOCTYPE svg PUBLIC '-//W3C//DTD SVG 1.1//EN'><svg>", "image/svg+xml", "vector"),
    (b"%PDF-1.7\n", "application/pdf", "document"),
    (b"%!PS-Adobe-3.0", "application/postscript", "document"),
    (zipped(*OFFICE, "word/document.xml"), WORD, "document"),
    (zipped(*OFFICE, "xl/workbook.xml"), EXCEL, "document"),
    (zipped(*OFFICE, "ppt/presentation.xml"), POWERPOINT, "document"),
    (open_document(ODT), ODT, "document"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(60), "application/x-ole-storage", "document"),
    (b"\0\0\0\x20ftypisom\0\0\x02\0isomiso2avc1mp41", "video/mp4", "video"),
    (b"\0\0\0\x14ftypqt  \0\0\0\0qt  ", "video/quicktime", "video"),
    (b"\0\0\0\x08wide\0\0\1\0mdat", "video/quicktime", "video"),
    (b"\x1aE\xdf\xa3\x9fB\x86\x81\1B\xf7\x81\1B\xf2\x81\4B\xf3\x81\x08B\x82\x84webm", "video/webm", "video"),
    (b"\x1aE\xdf\xa3\xa3B\x86\x81\1B\xf7\x81\1B\xf2\x81\4B\xf3\x81\x08B\x82\x88matroska", "video/x-matroska", "video"),
    (b"RIFF\0\1\0\0AVI LIST", "video/x-msvideo", "video"),
    (b"<!doctype html><title>x</title>", "text/html", "text"),
    (b"<html><body><svg></svg></body></html>", "text/html", "text"),
    (b"<!-- saved --><!DOCTYPE html><svg/>", "text/html", "text"),
    (b"<?xml version='1.0'?><!DOCTYPE note [<!ELEMENT note ANY>]><note/>", "application/xml", "text"),
    (b"a,b\n1,2\n", "text/plain", "text"),
    ("Grüße, 图片".encode(), "text/plain", "text"),
    ("text".encode("utf-16"), "text/plain", "text"),
    (b"the <svg> element draws", "text/plain", "text"),
    (zipped("a.png"), "application/zip", "archive"),
    (gzip.compress(b"<svg/>"), "image/svg+xml", "vector"),
    (gzip.compress(b"<html/>"), "application/gzip", "archive"),
    (tarred(), "application/x-tar", "archive"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed", "archive"),
    (b"", "application/octet-stream", "unknown"),
    (b"\x7fELF" + bytes(60), "application/octet-stream", "unknown"),
    (bytes(8) + saved(flag(9, 9), "image/png")[8:], "application/octet-stream", "unknown"),
    (b"\0\0\1\0\0\0" + bytes(60), "application/octet-stream", "unknown"),
    (b"RIFF\x24\0\0\0WAVEfmt ", "audio/wav", "unknown"),
]


@requirement("type.by_bytes", "type.families")
@pytest.mark.parametrize(
    ("data", "mime", "family"), FILES, ids=[f"{at} {mime}" for at, (_, mime, _) in enumerate(FILES)]
)
def test_a_file_is_identified_by_its_first_bytes(data: bytes, mime: str, family: str) -> None:
    kind = identify_file(data)
    assert (kind.mime, kind.family) == (mime, family)
    assert kind.name
    assert identify_file(data[:4096]) == kind


@given(st.binary(max_size=600))
def test_any_bytes_have_a_type(data: bytes) -> None:
    assert isinstance(identify_file(data), FileType)


@given(st.sampled_from([data[:40] for data, _, _ in FILES]), st.binary(max_size=300))
def test_any_bytes_after_a_real_signature_have_a_type(start: bytes, rest: bytes) -> None:
    assert isinstance(identify_file(start + rest), FileType)


def test_a_long_prologue_costs_no_more_than_its_length() -> None:
    assert identify_file(b"<!--" * 100_000).family == "text"
    assert identify_file(b"<!doctype x [" * 100_000).family == "text"
    assert identify_file(b"<?" * 100_000).family == "text"
