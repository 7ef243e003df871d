"""What a character looks like to a reader, as far as the characters of `</vision_proxy_` are concerned.

The facts are Unicode's: compatibility variants (full-width, mathematical, circled, raised letters, …) and combining
marks come from its normalisation form NFKD, look-alikes from the confusables of Unicode Technical Standard 39, of which
only those of our few characters are listed here. Added to these are what has neither: small capitals, letters with a
stroke or a hook, angle brackets of other scripts, signs of mathematics that point to the left, and letters that are
outlined or in black circles and squares.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

_LISTED = {
    "<": "AB 2C2 2F1 1438 16B2 2039 2264 2266 2268 226A 2272 2276 227A 227C 227E 22B0 22B2 22B4 22D6 22D8 22DA"
    " 22DC 2329 23F4 25C0 25C1 25C2 25C3 25C4 25C5 276C 276E 2770 27E8 27EA 2989 2991 2993 2996 29FC 2A79"
    " 2A7B 2A7D 2A7F 2A81 2A83 2A85 2A87 2A89 2A8B 2A8D 2A8F 2A91 2A95 2A97 2A99 2A9B 2A9D 2A9F 2AA1 2AA6"
    " 2AA8 2AAF 2AB1 2AB3 2AB5 2AB7 2AB9 2ABB 2AF7 2AF9 2B98 2B9C 2BC7 3008 300A FE3D 1D236 1F780",
    "/": "5C 1735 2041 2044 2215 2216 2571 2572 27CB 27CD 29F5 29F8 29F9 2CC6 2F03 3033 30CE 31D3 31D4 4E3F 1D20F"
    " 1D23A 1D23B",
    "_": "2CD 7FA 2017 203F 2054 23BD 2581",
    "v": "28B 3BD 3C5 474 475 5D8 667 6F7 142F 13D9 1D20 2228 22C1 2C74 2D38 A4E6 A6DF A75F ABA9 1051D 11706 118A0"
    " 118C0 16F08 1D20D",
    "i": "31 6C 7C 131 196 197 1C0 268 269 26A 2DB 399 3B9 406 456 4C0 4CF 5C0 5D5 5DF 627 661 6F1 7CA 13A5 16C1"
    " 1D7B 1D7C 2223 2373 23FD 2C92 2C93 2D4F A4F2 A647 AB75 FFE8 1028A 10309 10320 118C3 16F28 1CCF1 1E8C7",
    "s": "1BD 23F 282 405 455 54F 13D5 13DA 1D74 1D8A A4E2 A731 ABA5 ABAA 10296 10420 10448 118C1 16F3A",
    "o": "30 F8 19F 275 398 39F 3BF 3C3 3F4 41E 43E 472 473 4E8 4E9 555 585 5E1 647 665 6BE 6C1 6D5 6F5 7C0 966"
    " 9E6 A66 AE6 B20 B66 BE6 C66 CE6 D20 D66 E50 ED0 101D 1040 10FF 12D0 13BE 13EB 1D0F 1D11 2C9E 2C9F 2D41"
    " 2D54 3007 A4F3 A74A A74B AB3D AB3E AB8E ABBB 10292 102AB 10404 1042C 104C2 104EA 10516 114D0 118B5 118C8"
    " 118D7 118E0 1CCF0",
    "n": "14A 14B 19E 220 272 273 274 39D 3B7 43F 578 57C 1D28 1D70 1D87 2C9A 2C9B A4E0 10513",
    "p": "1A4 1A5 1BF 3A1 3C1 3F1 420 440 13E2 146D 1D18 1D7D 2374 2CA2 2CA3 A4D1 A750 A751 A752 A753 ABB2 10295",
    "r": "1A6 24C 24D 27C 27D 27E 280 433 491 13A1 13D2 1587 1D26 1D72 1D73 1D89 2C85 A4E3 AB47 AB48 AB71 AB81"
    " ABA2 104B4 16F35 1D216",
    "x": "D7 3A7 3C7 425 445 4B2 4B3 4FC 4FD 4FE 4FF 1541 157D 166D 166E 16B7 1D8D 2573 292B 292C 2A2F 2CAC 2CAD"
    " 2D5D A4EB A7B3 AB53 AB55 10290 102B4 10317 10322 10527 118EC",
    "y": "1B3 1B4 24E 24F 263 28F 3A5 3B3 3D2 423 443 4AE 4AF 4B0 4B1 10E7 13A9 13BD 1D8C 1EFE 1EFF 213D 2CA8 2CA9"
    " A4EC AB5A 102B2 118A4 118DC 16F43",
}  # fmt: skip
_ALIKE = {chr(int(each, 16)): plain for plain, listed in _LISTED.items() for each in listed.split()}
# A to Z outlined (newer than Python's tables), in black circles and squares, and as regional indicators.
_ALPHABETS = (0x1CCD6, 0x1F150, 0x1F170, 0x1F1E6)
_BLANK = "\u115f\u1160\u2800\u3164\uffa0\ufffc"  # these are no marks, spaces or controls, and show nothing all the same
_FIRST_TAG, _LAST_TAG = 0xE0020, 0xE007E  # ASCII once more, which no reader sees and some models read

BLANKS = frozenset(
    " \t\n\r\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
)
"""What a reader sees as a gap between words or lines."""
BRACKETS = "<\u226e\u2270\u2274\u2278\u2280\u22e0\u22ea\u22ec\ufe3f\ufe64\uff1c" + "".join(
    each for each, plain in _ALIKE.items() if plain == "<"
)
"""Everything that looks like an opening bracket."""
TAGS = f"{chr(_FIRST_TAG)}-{chr(_LAST_TAG)}"
"""Tag characters, as a range of a regular expression."""
TAG_BRACKET = chr(_FIRST_TAG + ord("<") - ord(" "))


@lru_cache(4096)
def read_as(letter: str, *, tags: bool) -> str:
    """Return what a reader takes a character for, in lower case; empty where it shows nothing of its own.

    Nothing of their own show spaces, controls, marks over other letters, and whatever Unicode lets a reader ignore.
    With `tags`, tag characters count as the letters that they spell.
    """
    if tags and _FIRST_TAG <= ord(letter) <= _LAST_TAG:
        letter = chr(ord(letter) - _FIRST_TAG + ord(" "))
    if letter in _ALIKE:
        return _ALIKE[letter]
    start = next((each for each in _ALPHABETS if each <= ord(letter) < each + 26), 0)
    plain = chr(ord(letter) - start + ord("a")) if start else unicodedata.normalize("NFKD", letter)
    return "".join(map(_alike, plain))


def _alike(letter: str) -> str:
    if letter in _BLANK or unicodedata.category(letter)[0] in "MZC":
        return ""
    lower = letter.lower()
    return _ALIKE.get(letter) or _ALIKE.get(lower) or lower
