"""Screens and pages whose words are known exactly: drawn from a seed, without repeated text, or kept in samples/."""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

SAMPLES = Path(__file__).resolve().parent / "samples"
SANS, BOLD, MONO = "DejaVuSans.ttf", "DejaVuSans-Bold.ttf", "DejaVuSansMono.ttf"
FONTS: list[Path] = []  # folders that come before the system's
Box = tuple[float, float, float, float]

_HEADS = "b br c ch cl d dr f fl g gr h j k l m n p pl pr qu r s sc sh sl st t th tr v w".split()
_VOWELS = "a e i o u ai ea ee oa oo ou".split()
_TAILS = "b ck d g l ll m n nd ng nt p r rd rk s sh st t x".split()


@dataclass(frozen=True)
class Line:
    """The words of one row, and the rectangle around them: left, top, right, bottom."""

    text: str
    box: Box
    ink: Box | None = None  # tight around the pixels of which a quarter at least is covered


@dataclass
class Page:
    name: str
    image: Image.Image
    lines: list[Line] = field(default_factory=list)

    @classmethod
    def blank(cls, name: str, size: tuple[int, int], colour: str) -> "Page":
        return cls(name, Image.new("RGB", size, colour))

    @property
    def pen(self) -> ImageDraw.ImageDraw:
        return ImageDraw.Draw(self.image)

    def write(self, x: float, y: float, text: str, font: ImageFont.FreeTypeFont, colour: str) -> float:
        """Puts words on the page and remembers where; returns where they end."""
        self.pen.text((x, y), text, colour, font)
        box = self.pen.textbbox((x, y), text, font)
        self.lines.append(Line(text, box, _measure_ink((x, y), text, font, box)))
        return box[2]


def _measure_ink(place: tuple[float, float], text: str, font: ImageFont.FreeTypeFont, box: Box) -> Box:
    left, top = int(box[0]) - 4, int(box[1]) - 4
    cover = Image.new("L", (int(box[2]) - left + 4, int(box[3]) - top + 4))
    ImageDraw.Draw(cover).text((place[0] - left, place[1] - top), text, 255, font)
    found = cover.point(lambda level: 255 * (level >= 64)).getbbox() or (4, 4, cover.width - 4, cover.height - 4)
    return (left + found[0], top + found[1], left + found[2], top + found[3])


class Words:
    """Words that can be spoken but are in no dictionary, each text only once."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._used: set[str] = set()

    def word(self) -> str:
        pick = self._chance.choice
        syllables = self._chance.choice((1, 2, 2, 3))
        made = "".join(pick(_HEADS) + pick(_VOWELS) + pick(_TAILS) * (n == syllables - 1) for n in range(syllables))
        if made in self._used:
            return self.word()
        self._used.add(made)
        return made

    def number(self) -> str:
        return str(self._chance.randrange(10, 99_999))

    def some(self, count: int) -> str:
        return " ".join(self.word() if self._chance.random() < 0.9 else self.number() for _ in range(count))

    def sentence(self, count: int) -> str:
        return f"{self.some(count).capitalize()}."

    def between(self, low: int, high: int) -> int:
        return self._chance.randint(low, high)


def load_font(name: str, size: int) -> ImageFont.FreeTypeFont:
    """Return a font by the name of its file, from FONTS or the system's font folders."""
    try:
        return ImageFont.truetype(next((folder / name for folder in FONTS if (folder / name).exists()), name), size)
    except OSError:
        raise SystemExit(f"bench: the font {name} is missing; on Debian: apt-get install fonts-dejavu") from None


def draw_terminal(words: Words) -> Page:
    page, mono = Page.blank("terminal 1920x1080", (1920, 1080), "#101418"), load_font(MONO, 15)
    for row, y in enumerate(range(12, 1060, 20)):
        if row % 9 == 4:
            continue
        text = f"{words.word()}/{words.word()}: {words.some(words.between(3, 14))} [{words.number()} ms]"
        page.write(10, y, text, mono, ("#d0d0d0", "#7ec699", "#e5c07b")[row % 3])
    return page


def _draw_editor(page: Page, words: Words, size: int) -> Page:
    width, height = page.image.size
    mono, sans, step = load_font(MONO, size), load_font(SANS, size), round(size * 1.5)
    side = width // 6
    page.pen.rectangle((0, 0, side, height), "#252526")
    page.pen.rectangle((0, height - 2 * step, width, height), "#007acc")
    for y in range(step, height - 3 * step, step):
        if words.between(0, 3):
            page.write(step, y, f"{words.word()}_{words.word()}.py", sans, "#cccccc")
        if words.between(0, 6):
            x = side + step + size * 2 * words.between(0, 4)
            call = f"{words.word()} = {words.word()}({words.word()}, {words.number()})"
            code = f"{call}  # {words.some(words.between(2, 7))}"
            page.write(x, y, code, mono, ("#d4d4d4", "#9cdcfe", "#ce9178", "#6a9955")[words.between(0, 3)])
    page.write(step, height - 1.7 * step, words.some(4), sans, "#ffffff")
    return page


def draw_ide(words: Words) -> Page:
    return _draw_editor(Page.blank("IDE 1920x1080", (1920, 1080), "#1e1e1e"), words, 14)


def draw_ide_4k(words: Words) -> Page:
    return _draw_editor(Page.blank("IDE 3840x2160", (3840, 2160), "#1e1e1e"), words, 20)


def draw_form(words: Words) -> Page:
    page, sans, bold = Page.blank("form 1280x900", (1280, 900), "#f4f5f7"), load_font(SANS, 14), load_font(BOLD, 22)
    page.pen.rounded_rectangle((190, 30, 1090, 870), 12, "white", "#d0d5dd")
    page.write(230, 56, words.some(3).title(), bold, "#101828")
    for number in range(16):
        x, y = 230 + number % 2 * 420, 120 + number // 2 * 84
        page.write(x, y, words.some(2).capitalize(), sans, "#344054")
        page.pen.rounded_rectangle((x, y + 24, x + 390, y + 62), 6, "white", "#98a2b3")
        page.write(x + 12, y + 34, words.some(words.between(1, 4)), sans, "#667085")
    page.pen.rounded_rectangle((230, 800, 380, 840), 8, "#0067c0")
    page.write(250, 811, words.word().capitalize(), sans, "white")
    return page


def draw_chart(words: Words) -> Page:
    page, sans, bold = Page.blank("chart 1200x700", (1200, 700), "white"), load_font(SANS, 13), load_font(BOLD, 18)
    page.write(80, 16, words.some(5).capitalize(), bold, "black")
    page.pen.line((80, 60, 80, 620, 1160, 620), "black", 2)
    for tick in range(6):
        page.write(34, 612 - tick * 104, str(tick * 20), sans, "black")
        page.pen.line((80, 620 - tick * 104, 1160, 620 - tick * 104), "#dddddd")
    for bar in range(12):
        x, value = 96 + bar * 88, words.between(8, 99)
        page.pen.rectangle((x, 620 - value * 5, x + 56, 619), ("#4878d0", "#ee854a", "#6acc64")[bar % 3])
        page.write(x + 18, 602 - value * 5, str(value), sans, "black")
        page.write(x, 630, words.word()[:8], sans, "black")
    return page


def draw_small_text(words: Words) -> Page:
    page, sans = Page.blank("9 px text 1000x600", (1000, 600), "white"), load_font(SANS, 9)
    for x in (20, 510):
        for y in range(16, 580, 14):
            if words.between(0, 7):
                page.write(x, y, words.sentence(words.between(7, 9)), sans, "#202020")
    return page


def _draw_article(page: Page, words: Words, left: int, right: int) -> Page:
    """Headings, paragraphs and tables, as a browser lays them out, down to the foot of the page."""
    height = page.image.height
    sans, bold, y = load_font(SANS, 14), load_font(BOLD, 22), 60
    page.pen.rectangle((0, 0, page.image.width, 40), "#24292f")
    page.write(left, 12, words.some(4), load_font(SANS, 15), "white")
    while y < height - 320:
        page.write(left, y, words.some(words.between(2, 5)).capitalize(), bold, "#1f2328")
        y += 52
        for _ in range(words.between(1, 3)):
            y = _draw_paragraph(page, words, sans, (left, right, y)) + 18
        if words.between(0, 2) == 0:
            y = _draw_table(page, words, sans, (left, right, y)) + 24
        y += 24
    return page


def _draw_paragraph(page: Page, words: Words, sans: ImageFont.FreeTypeFont, room: tuple[int, int, int]) -> int:
    left, right, y = room
    for _ in range(words.between(2, 6)):
        if y > page.image.height - 60:
            break
        text = words.word()
        while sans.getlength(longer := f"{text} {words.some(1)}") < right - left:
            text = longer
        page.write(left, y, text, sans, "#1f2328")
        y += 22
    return y


def _draw_table(page: Page, words: Words, sans: ImageFont.FreeTypeFont, room: tuple[int, int, int]) -> int:
    left, right, y = room
    width = (right - left) // 4
    for row in range(words.between(3, 5)):
        if y > page.image.height - 80:
            break
        page.pen.rectangle((left, y, left + 4 * width, y + 34), "#f6f8fa" if row % 2 else "white", "#d0d7de")
        for cell in range(4):
            page.write(left + cell * width + 10, y + 7, words.some(words.between(1, 2)), sans, "#1f2328")
        y += 34
    return y


def draw_tall_page(words: Words) -> Page:
    return _draw_article(Page.blank("page 1280x6000", (1280, 6000), "white"), words, 190, 1090)


def draw_taller_page(words: Words) -> Page:
    return _draw_article(Page.blank("page 1200x12000", (1200, 12000), "white"), words, 120, 1080)


MAKERS: tuple[Callable[[Words], Page], ...] = (
    draw_terminal,
    draw_ide,
    draw_ide_4k,
    draw_form,
    draw_chart,
    draw_small_text,
    draw_tall_page,
    draw_taller_page,
)


def draw_pages(seed: int) -> Iterator[Page]:
    for number, maker in enumerate(MAKERS):
        yield maker(Words(1000 * seed + number))


def load_samples() -> Iterator[Page]:
    """Yield the screens in samples/, with their words joined into lines."""
    for path in sorted(SAMPLES.glob("*.json")):
        page = Page(f"sample {path.stem}", Image.open(path.with_suffix(".png")).convert("RGB"))
        words = [Word(**word) for word in json.loads(path.read_text())["words"]]
        page.lines = list(_join_rows([word for word in words if word.b[2] <= page.image.width]))
        yield page


@dataclass(frozen=True)
class Word:
    """As it lies in samples/: its text, its box, its ink and the number of its block."""

    t: str
    b: Box
    i: Box
    k: int


def _join_rows(words: list[Word]) -> Iterator[Line]:
    """Join neighbours in the list that are at the same height and close together."""
    run: list[Word] = []
    for one, other in pairwise([*words, Word("", (0, 0, 0, 0), (0, 0, 0, 0), -1)]):
        run.append(one)
        height = one.b[3] - one.b[1]
        same = abs(one.b[1] - other.b[1]) < height / 3 and 0 <= other.b[0] - one.b[2] < 2 * height
        if not (same and one.k == other.k):
            text = " ".join(word.t for word in run)
            yield Line(text, enclose([word.b for word in run]), enclose([word.i for word in run]))
            run = []


def enclose(boxes: list[Box]) -> Box:
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)
