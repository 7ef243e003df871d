"""Recognize an upstream's error response about a document that has too many pages."""

from __future__ import annotations

import re

from sightline.profiles.rejections import UNRELATED_STATUSES, compile_pattern, extract_sentences

_WORD_ENDS = re.compile(r"_|(?<=[a-z])(?=[A-Z])")  # inside error codes such as too_many_pages
_PAGES = r"(?:pdf |document |input )*pages?\b"
_OVER = (
    r"\b(?:maximum|max|limit\w*|exceed\w*|over|above|cap|only|allow\w*|support\w*|at most|up to|within|too many|no more"
    r"|(?:more|fewer|less|greater|longer|larger) than|not be (?:greater|more|longer))\b"
)
# In Italian, Spanish, Portuguese, French, Dutch, German, Polish, Russian, Japanese and Korean.
_PAGES_ABROAD = r"(?:p[aá]gin(?:e|as|a's)\b|\bpages\b|\bseiten(?:zahl)?\b|\bstron\b|страниц\w*|ページ|페이지|頁)"
_OVER_ABROAD = (
    r"(?:\btropp[eo]\b|super[aoi]|eccede|oltre|massim[oai]|limite|límite|máxim[oa]|excede|demasiad|\btrop de\b|dépass"
    r"|te veel|meer dan|\bzu viele\b|überschr|maximal|höchstens|więcej niż|za dużo|превыш|слишком много|не более"
    r"|超|上限|まで|以下|초과|제한)"
)
PAGE_LIMIT = (
    rf"too many {_PAGES}"
    r"|\bpdf too long\b"
    rf"|max(?:imum)? (?:number of )?{_PAGES}"
    rf"|{_OVER}[^.;!?]{{0,60}}\b\d[\d,]*[ -]{_PAGES}"
    rf"|{_OVER} (?:the )?(?:number|count) of {_PAGES}"
    rf"|\b(?:pages|page (?:count|number|limit|quota)|\d[- ]page)\b[^.;!?]{{0,80}}{_OVER}"
    r"|\bpage (?:limit|quota|cap)\b"
    # The limit is in the next clause: "1200 pages; only 1000 are allowed".
    rf"|\d {_PAGES}[;,.] (?:but |and |the )?(?:only |cap |limit |max\w* )*(?:is )?(?:the first )?\d[\d,]*"
    r"(?: pages)?(?:\.|$| (?:are|is|can be|may be) (?:allow|permit|support|accept|process|read)\w*)"
    rf"|\d[- ]{_PAGES} or (?:fewer|less)\b"
    r"|\bpages?(?: count)?:? \d[\d,]* ?> ?\d"
    r"|\bpages?\b[^.;!?]{0,40}\bout of (?:the )?(?:allowed |valid )?(?:bounds|range)\b"
    r"|\bpage range[^.;!?]{0,20}(?:exceed|too (?:large|long|wide))"
    rf"|{_OVER_ABROAD}[^.;!?]{{0,30}}{_PAGES_ABROAD}"
    rf"|{_PAGES_ABROAD}[^.;!?]{{0,30}}{_OVER_ABROAD}"
    r"|页数.{0,20}(?:超|不能|不得|上限|限制|过多|太多|最多)"
    r"|(?:超过|超出|最多|上限|不超过).{0,20}\d\s*页"
)


def is_page_limit(status: int, text: str) -> bool:
    """Return whether an error response says that a document has too many pages."""
    if status in UNRELATED_STATUSES:
        return False
    sentences = (_WORD_ENDS.sub(" ", sentence) for sentence in extract_sentences(text))
    return any(compile_pattern(PAGE_LIMIT).search(sentence) for sentence in sentences)
