"""Rejections of documents with too many pages, in the words of providers and gateways."""

from __future__ import annotations

import json

import pytest

from sightline.profiles.rejections import is_page_limit
from tests.requirements import requirement

# Where each was seen; the last ones are words that servers and gateways of our users may choose.
WORDINGS = [
    # anthropics/claude-code#6231, #5707
    (400, "messages.38.content.0.pdf.source.base64.data: A maximum of 100 PDF pages may be provided."),
    (400, "A maximum of 600 PDF pages may be provided."),  # Anthropic, models with a window of a million tokens
    # Claude on Bedrock, behind LiteLLM
    (
        400,
        "litellm.BadRequestError: BedrockException - ValidationException: A maximum of 100 PDF pages may be provided",
    ),
    # Gemini, quoted in public code
    (400, "The document contains 3100 pages which exceeds the supported page limit of 1000."),
    (400, "Unable to process input: the document contains 1200 pages which exceeds the supported page limit of 1000"),
    (400, "Document exceeds the maximum number of pages"),
    (413, "PDF has 150 pages. Maximum 100 pages supported."),
    (400, "PDF has too many pages (640) — max 100."),
    (422, "Input should have at most 1000 pages"),
    (400, "This PDF is longer than 100 pages"),
    (400, "The number of pages must not be greater than 100"),
    (400, "Files are limited to 100 pages"),
    (400, "only documents with fewer than 100 pages are accepted"),
    (400, "the file is over the 100-page limit"),
    (400, "Page count 512 is above the maximum"),
    (400, "Document Max Pages Exceeded"),
    (400, "too_many_pages"),
    (400, "PDF_PAGE_LIMIT_EXCEEDED"),
    (400, "TooManyPages"),
    (500, "document page limit reached"),
    (400, "文件页数超过限制"),
    (400, "PDF 最多支持 100 页"),
    (400, "Document page count (150) is greater than the limit (100)"),
    (400, "PDF is too long: 230 pages (max 100)"),
    (400, "PDF page cap of 100 reached"),
    (400, "The file contains 321 pages, 300 are permitted"),
    (400, "PDF exceeds page limit"),
    (400, "A maximum of 100 PDF pages may be provided."),
    (400, "Too many pages in document"),
    (400, "The number of pages in the PDF must not exceed 600"),
    (400, "Documents can have up to 1000 pages"),
    (400, "We accept PDFs of 100 pages or fewer"),
    (400, "The document has 1200 pages; only 1000 are allowed."),
    (400, "pages: 300 > 100"),
    (400, "Page count 150 above maximum 100"),
    (400, "This PDF has 1,200 pages. The cap is 1,000."),
    (400, "You can upload up to 40 pages per PDF"),
    (400, "PDF too long (more than 100 pages)"),
    (400, "pdf_too_long"),
    (400, "PDF has 300 pages, which is above the 100-page cap"),
    (400, "Document with 500 pages is above the allowed 200"),
    (400, "文档页数超过限制"),
    (400, "PDF has 120 pages. Only the first 100 can be processed"),
    (400, "Documents longer than 100 pages aren't accepted"),
    (400, "Your file has more pages than we support (100)"),
    (400, "Trop de pages dans le document"),
    (400, "Numero massimo di pagine superato (100)"),
    (400, "Invalid page range: at most 20 pages"),
    (400, "Le document dépasse 100 pages"),
    (400, "Demasiadas páginas en el PDF"),
    (400, "Page range exceeds 100"),
    (400, "Документ превышает 100 страниц"),
    (400, "文件頁數超過上限"),
    (400, "Number of pages (300) out of allowed range [1, 100]"),
    (400, "Document nie może mieć więcej niż 100 stron"),
    (400, "O documento excede o limite de 100 páginas"),
    (400, "Page range too large"),
    (400, "Слишком много страниц"),
    (400, "page_range_out_of_bounds"),
    (400, "Page range out of bounds: 300 > 100"),
    (400, "El documento supera el límite de 100 páginas"),
    (400, "ページ数が上限を超えています"),
    (400, "Het document heeft te veel pagina's"),
]
OTHERS = [
    (429, "A maximum of 100 PDF pages per minute may be provided."),
    (401, "too many pages"),
    (400, "Token limit exceeded. See the documentation page for details."),
    (400, "Rate limit reached, visit the pricing page to raise it."),
    (400, "image exceeds 5 MB maximum"),
    (400, "The document has no pages."),
    (400, "The PDF specified was not valid."),
    (400, "prompt is too long: 250000 tokens > 200000 maximum"),
    (404, "the page was not found"),
    (500, "internal error"),
    (400, "The request is above the cap. See our pricing page"),
    (400, "prompt is too long: 210000 tokens > 200000 maximum"),
    (400, "This support page explains the limit"),
    (400, "The page has an error. Only 3 requests supported"),
    (400, "max tokens exceeded, see the docs page for limits"),
    (400, "See page 12; only JSON is allowed"),
    (400, "The page token is above the allowed length"),
    (400, "Page not found; only 2 retries are allowed"),
    (400, "La pagina non esiste"),
    (400, "See pagina 3 of the manual"),
    (400, "Seite nicht gefunden"),
    (400, "Index out of range"),
    (400, "Value out of bounds"),
    (400, "page token out of date"),
    (400, "The page is out of service"),
    (400, "Limite di richieste superato, vedi la pagina dei prezzi"),
    (400, "Ratenlimit überschritten. Siehe unsere Seite"),
    (400, "invalid page token"),
]


@requirement("ask.page_wordings")
@pytest.mark.parametrize(("status", "words"), WORDINGS)
def test_a_page_limit_is_recognized_in_any_wording(status: int, words: str) -> None:
    assert is_page_limit(status, words)
    assert is_page_limit(status, json.dumps({"type": "error", "error": {"type": "invalid", "message": words}}))
    assert is_page_limit(status, json.dumps({"error": {"message": json.dumps({"detail": words})}}))


@requirement("ask.page_wordings")
@pytest.mark.parametrize(("status", "words"), OTHERS)
def test_other_rejections_are_not_about_pages(status: int, words: str) -> None:
    assert not is_page_limit(status, json.dumps({"error": {"message": words}}))
