"""What the pages ask: conversations, one conversation, an image, costs, settings, as JSON; and pictures.

The functions that return JSON block: the application calls them in threads. Workers make the pictures, once each: the
stored bytes, thumbnails, and an image as it was sent. The record keeps an image and the views that a tool has shown of
it, but not what the proxy made of it for a model. That is made again by the same function, from the same bytes, to the
same size. If it has the sha256 that the receipt names, these are the very bytes that were sent; else the page says that
they were made again.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import astuple, replace
from typing import NamedTuple

from sightline.api.session import ANY_PROVIDER, SAFE_EDGE
from sightline.model.geometry import Size
from sightline.model.image import (
    FitPart,
    Image,
    ImageTarget,
    Sizing,
    compute_base64_length,
    compute_seen_size,
    is_illegibly_tall,
)
from sightline.model.ports import ImageStore, Store
from sightline.model.profile import UpstreamDirectory
from sightline.model.records import ANSWER_DETAIL, FateName, FiledReceipt, LedgerEntry, Receipt, ReceiptLine, StoredView
from sightline.model.refusal import Refusal
from sightline.model.request_trace import ConversationSummary
from sightline.model.scene import Json
from sightline.model.seer import Usage
from sightline.pixels import pack_target, unpack_fit_result
from sightline.pixels.workers import WorkerPool
from sightline.profiles.profile_lookup import FAMILIES
from sightline.settings import KEYS, Settings
from sightline.settings.upstreams import find_upstream, get_consent_name
from sightline.vision.concurrency import LruCache, SingleFlight
from sightline.vision.providers import calculate_cost

PAGE_SIZE = 50  # conversations, or requests of one
MAX_NEW_IMAGES = 24  # of a request, in the timeline
MAX_QUESTIONS = 100  # about an image, the newest
MAX_VIEWS = 12  # of an image, the newest
MAX_ALT = 200  # characters of a description that are the alternative text of its image
MAX_IMAGES = 100  # of a request, when all are listed
_MAX_LATENCIES = 400
_FATES = {
    "shown": "The model got these pixels as the client sent them.",
    "refitted": "The model got the same image in another size or format.",
    "told": "The model got words instead of pixels.",
    "retired": "The model saw it earlier; a line now says how to see it again.",
    "refused": "The model got one sentence that says why there are no pixels.",
    "repeated": "The same image is in the same result, so this copy became a marker.",
}


class Queries:
    def __init__(
        self, record: Store, get_settings: Callable[[], Settings], get_directory: Callable[[], UpstreamDirectory]
    ) -> None:
        self._record = record
        self._get_settings = get_settings
        self._get_directory = get_directory
        self._prices: dict[tuple[str, str], float | None] = {}

    def list_conversations(self, offset: int) -> dict[str, Json] | Refusal:
        found = self._record.ledger.list_conversations(PAGE_SIZE + 1, offset)
        if not found and (trouble := self._record.find_trouble()):
            return trouble
        rows: list[Json] = [self._write_summary(each) for each in found[:PAGE_SIZE]]
        return {"conversations": rows, "next": offset + PAGE_SIZE if len(found) > PAGE_SIZE else None}

    def read_conversation(self, conversation: str, after: int) -> dict[str, Json] | Refusal:
        summary = self._record.ledger.find_conversation(conversation)
        if summary is None:
            return self._record.find_trouble() or Refusal(
                "not_found", "there is no such conversation", "it may have expired or been forgotten"
            )
        ledger = self._record.ledger
        found = ledger.read_conversation(conversation, PAGE_SIZE + 1, after)
        seen: dict[tuple[str, str], FateName] = {}
        for before in ledger.read_conversation(conversation, 1, after - 1) if after else ():
            _list_new_images(before.receipt, seen)
        rows: list[Json] = [self._write_receipt(each, seen) for each in found[:PAGE_SIZE]]
        more = found[PAGE_SIZE - 1].id if len(found) > PAGE_SIZE else None
        return {"summary": self._write_summary(summary), "requests": rows, "next": more}

    def list_images(self, conversation: str, number: int, offset: int) -> dict[str, Json] | Refusal:
        """Return the images of one request, from this one on."""
        found = self._record.ledger.read_conversation(conversation, 1, number - 1)
        if not found or found[0].id != number:
            return Refusal("not_found", "there is no such request", "it may have expired or been forgotten")
        lines = found[0].receipt.sights[offset : offset + MAX_IMAGES + 1]
        images = self._write_lines(lines[:MAX_IMAGES])
        return {"images": images, "next": offset + MAX_IMAGES if len(lines) > MAX_IMAGES else None}

    def find_newest(self) -> dict[str, Json]:
        """Return the newest receipt in a few words; its id changes with every request."""
        newest = next(iter(self._record.ledger.list_receipts(1)), None)
        if newest is None:
            return {"id": 0, "conversation": ""}
        return {"id": newest.id, "conversation": newest.trace.conversation, "model": newest.receipt.model}

    def read_image(self, sha256: str) -> dict[str, Json]:
        """Return what is known about an image: descriptions, questions and their cost."""
        texts = self._record.descriptions.list_texts(sha256)
        entries = self._record.ledger.list_entries_about(sha256)
        descriptions: list[Json] = [{"seer": seer, "text": text} for seer, text in texts]
        questions: list[Json] = [_write_entry(each, sha256) for each in entries[-MAX_QUESTIONS:]]
        views: list[Json] = [_write_view(each) for each in self._record.images.list_views(sha256, MAX_VIEWS)]
        return {"sha256": sha256, "descriptions": descriptions, "questions": questions, "views": views}

    def sum_usage(self) -> dict[str, Json] | Refusal:
        """Return what seers cost by day, and how long their answers took."""
        spent = self._record.find_trouble() or self._record.ledger.sum_spending()
        if isinstance(spent, Refusal):
            return spent
        days: list[Json] = [
            {"day": each.day, "seer": each.seer, "calls": each.calls, "cost_usd": each.cost_usd, "failed": each.failed}
            for each in spent
        ]
        timed = [each for each in self._record.ledger.list_entries() if each.latency_ms is not None and each.seer]
        latencies: list[Json] = [{"seer": each.seer, "ms": each.latency_ms} for each in timed[-_MAX_LATENCIES:]]
        return {"days": days, "latencies": latencies}

    def list_settings(self) -> dict[str, Json]:
        """Return each setting with what decided it, and each provider with its consent. Keys are masked."""
        settings = self._get_settings()
        rows: list[Json] = [
            {
                "name": key.name,
                "value": settings.mask_value(key.name),
                "source": settings.sources[key.name],
                "restart": key.needs_restart,
            }
            for key in KEYS
        ]
        consents = self._record.policy.read_consents()
        names = sorted({get_consent_name(each) for each in self._get_directory().by_name.values()} | consents.keys())
        providers: list[Json] = [{"name": name, "consent": consents.get(name)} for name in names]
        return {"file": str(settings.file), "settings": rows, "providers": providers}

    def _write_summary(self, summary: ConversationSummary) -> dict[str, Json]:
        price = self._find_price(summary.upstream, summary.model) if summary.models == 1 else None
        cost = None if price is None else round(price * summary.tokens_after, 6)
        without = None if price is None else round(price * summary.tokens_before, 6)
        return {**summary.as_json(), "cost_usd": cost, "cost_without_usd": without}

    def _write_receipt(self, filed: FiledReceipt, seen: dict[tuple[str, str], FateName]) -> dict[str, Json]:
        """Return a request with its new images and those whose fate changed; `seen` has the fates before it."""
        receipt, trace = filed.receipt, filed.trace
        price = self._find_price(receipt.upstream, receipt.model)
        new = _list_new_images(receipt, seen)
        images = self._write_lines(new[:MAX_NEW_IMAGES])
        fates: dict[str, Json] = {**Counter(line.fate for line in receipt.sights)}
        before = sum(line.before or 0 for line in receipt.sights)
        after = sum(line.after or 0 for line in receipt.sights)
        return {
            "id": filed.id,
            "at": filed.at,
            "model": receipt.model,
            "upstream": receipt.upstream,
            "wire": filed.wire,
            "client": filed.client,
            "notes": [*receipt.notes],
            "images": images,
            "new_images": len(new),
            "fates": fates,
            "tokens_before": before,
            "tokens_after": after,
            "cost_usd": None if price is None else round(price * after, 6),
            "cost_without_usd": None if price is None else round(price * before, 6),
            "answer": self._write_answer(filed),
            **trace.as_json(),
        }

    def _write_lines(self, lines: Sequence[ReceiptLine]) -> list[Json]:
        """Return images of a request, with whether the record has them, and their alternative texts."""
        hashes = {line.sha256 for line in lines if line.sha256}
        stored = self._record.images.find_stored(hashes)
        said = self._record.descriptions.find_openings(hashes, MAX_ALT)
        return [
            {**_write_line(line), "kept": line.sha256 in stored, "alt": said.get(line.sha256, "")} for line in lines
        ]

    def _write_answer(self, filed: FiledReceipt) -> dict[str, Json] | None:
        """Return the tokens of the answer as its provider counted them, and their price; None: it did not say."""
        usage, receipt = filed.usage, filed.receipt
        if usage.input is None:
            return None
        upstream = find_upstream(self._get_directory().by_name, receipt.upstream)
        cost = calculate_cost(upstream, receipt.model, usage) if upstream and upstream.bases else None
        return {
            "input": usage.input,
            "output": usage.output,
            "cached": usage.cached,
            "written": usage.written,
            "cost_usd": None if cost is None else round(cost, 6),
        }

    def _find_price(self, upstream_name: str, model: str) -> float | None:
        """Return the list price of one input token, without a discount for cached ones; None: it is not known."""
        key = upstream_name, model
        if key not in self._prices:
            upstream = find_upstream(self._get_directory().by_name, upstream_name)
            million = Usage(input=1_000_000, output=0)
            cost = calculate_cost(upstream, model, million) if upstream and upstream.bases else None
            self._prices[key] = None if cost is None else cost / 1_000_000
        return self._prices[key]


def _list_new_images(receipt: Receipt, seen: dict[tuple[str, str], FateName]) -> list[ReceiptLine]:
    """Return the images that are new or have a new fate, and add all to `seen`."""
    new = [line for line in receipt.sights if seen.get((line.place, line.sha256)) != line.fate]
    seen.update({(line.place, line.sha256): line.fate for line in new})
    return new


def _write_line(line: ReceiptLine) -> dict[str, Json]:
    return {
        "place": line.place,
        "fate": line.fate,
        "means": _FATES[line.fate],
        "why": line.why,
        "tokens_before": line.before,
        "tokens_after": line.after,
        "sha256": line.sha256,
        "filename": line.filename,
        "size": list(line.size) if line.size else None,
        "sent_size": list(line.sent_size) if line.sent_size else None,
        "bytes": line.bytes,
        "sent_bytes": line.sent_bytes,
        "sent_sha256": line.sent_sha256,
        "seer": line.seer,
    }


def _write_view(view: StoredView) -> dict[str, Json]:
    """Return what a tool has shown of an image, in the very bytes that are kept."""
    crop = json.loads(view.result).get("crop")
    size = view.pixels.size
    return {"pixels": view.pixels.sha256, "size": [size.width, size.height], "crop": crop, "note": view.text}


def _find_crop(entry: LedgerEntry, sha256: str) -> Json:
    """Return the part of an image that a question was about, as [x, y, width, height]; None: all of it."""
    crops = entry.about.get("crop_resolved_pixels")
    index = entry.images.index(sha256) if sha256 in entry.images else 0
    text = crops[index] if isinstance(crops, list) and index < len(crops) else None
    numbers = [int(each) for each in text.split(",") if each.isdigit()] if isinstance(text, str) else []
    return [*numbers] if len(numbers) == 4 else None


def _write_entry(entry: LedgerEntry, sha256: str) -> dict[str, Json]:
    question, answer = entry.about.get("question"), entry.about.get(ANSWER_DETAIL)
    return {
        "kind": entry.kind.removeprefix("vision_proxy."),
        "seer": entry.seer,
        "question": question if isinstance(question, str) else "",
        "answer": answer if isinstance(answer, str) else "",
        "crop": _find_crop(entry, sha256),
        "cost_usd": entry.cost_usd,
        "input": entry.usage.input,
        "output": entry.usage.output,
        "cached": entry.cache_hit,
        "latency_ms": entry.latency_ms,
        "error": entry.error,
        "at": entry.at,
    }


# Pictures


THUMBNAIL_EDGE = 320
MAX_EDGE = 2400
MAX_SENT_EDGE = 8000
SAFE_TYPES = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})
"""Types that every browser shows and that contain no scripts."""
_CACHED_BYTES = 64 * 1024 * 1024
_MAX_CONCURRENT = 4
_FORMATS = ("image/webp", "image/png", "image/jpeg")
_NOT_STORED = Refusal("not_found", "the record does not have this image", "it may have expired or been forgotten")

Picture = tuple[str, bytes]
"""A media type and the bytes."""


class SentImage(NamedTuple):
    """What a receipt says about an image as it was sent."""

    sha256: str
    size: tuple[int, int]
    bytes: int


class PictureMaker:
    def __init__(self, images: ImageStore, workers: WorkerPool) -> None:
        self._images = images
        self._workers = workers
        self._made: LruCache[Picture] = LruCache(_CACHED_BYTES)
        self._flights: SingleFlight[Picture | Refusal] = SingleFlight()
        self._semaphore = asyncio.Semaphore(_MAX_CONCURRENT)

    async def read(self, sha256: str) -> Picture | Refusal:
        """Return an image as it is stored; in another format if browsers might not show it or run what is in it."""
        image = await asyncio.to_thread(self._read_image, sha256)
        if image is None:
            return _NOT_STORED
        return (image.mime, image.data) if image.mime in SAFE_TYPES else await self.scale(sha256, MAX_EDGE)

    async def scale(self, sha256: str, edge: int) -> Picture | Refusal:
        """Return an image whose longer edge has at most this many pixels."""
        key = sha256, edge
        made = self._made.get(key)
        if made is None:
            return await self._flights.run(key, lambda: self._make(sha256, edge))
        if await asyncio.to_thread(self._is_stored, sha256):
            return made
        self._made.discard(key)  # it was forgotten, or has expired
        return _NOT_STORED

    async def _make(self, sha256: str, edge: int) -> Picture | Refusal:
        async with self._semaphore:
            image = await asyncio.to_thread(self._read_image, sha256)
            target = ImageTarget(_FORMATS, edge=edge, still=True, keeps_geometry=True)
            made = _NOT_STORED if image is None else await self._fit(image, target)
        if isinstance(made, Refusal):
            return made
        return self._made.put((sha256, edge), (made.image.mime, made.image.data), len(made.image.data))

    async def make_sent_picture(self, sha256: str, sent: SentImage) -> tuple[Picture, bool] | Refusal:
        """Return an image as it was sent, and whether these are the very bytes."""
        image = await asyncio.to_thread(self._read_image, sha256)
        if image is None:
            return _NOT_STORED
        edge, encoded = max(sent.size), compute_base64_length(sent.bytes)
        scaled = ImageTarget((), encoded, edge, still=True, keeps_geometry=True)
        rules = _list_folding_rules(image, sent)
        folded = [replace(scaled, edge=None, sizing=rule, keeps_geometry=False) for rule in rules]
        again: Picture | None = None
        for target in (*folded, scaled):
            for mime in _FORMATS:
                async with self._semaphore:
                    made = await self._fit(image, replace(target, formats=(mime,)))
                if isinstance(made, FitPart) and made.image.sha256 == sent.sha256:
                    return (mime, made.image.data), True
                if target in folded and not (isinstance(made, FitPart) and astuple(made.image.size) == sent.size):
                    break  # no other format has another layout
                if isinstance(made, FitPart) and again is None:
                    again = mime, made.image.data
        return _NOT_STORED if again is None else (again, False)

    async def find_pieces(self, sha256: str, pixels: str) -> list[Json]:
        """Return the rectangles of an image that a view shows, in the order in which it shows them; empty: unknown."""
        image = await asyncio.to_thread(self._read_image, sha256)
        for target in (replace(ANY_PROVIDER, edge=SAFE_EDGE), ANY_PROVIDER) if image else ():
            async with self._semaphore:
                made = await self._fit(image, target) if image else _NOT_STORED
            if isinstance(made, FitPart) and made.image.sha256 == pixels:
                sources = [piece.source for piece in made.map.pieces]
                return [[round(each.x), round(each.y), round(each.width), round(each.height)] for each in sources]
        return []

    def _is_stored(self, sha256: str) -> bool:
        return bool(self._images.find_stored([sha256])) or self._images.read_pixels(sha256) is not None

    def _read_image(self, sha256: str) -> Image | None:
        return self._images.read(None, sha256) or self._images.read_pixels(sha256)

    async def _fit(self, image: Image, target: ImageTarget) -> FitPart | Refusal:
        fitted = await self._workers.run("fit", image.data, pack_target(target))
        return fitted if isinstance(fitted, Refusal) else unpack_fit_result(fitted.facts, fitted.data).parts[0]


def _list_folding_rules(image: Image, sent: SentImage) -> list[Sizing]:
    """Return the rules of providers by which an image may have been folded into one of the size that was sent."""
    size = Size(*sent.size)
    if image.size.width * size.height == image.size.height * size.width:
        return []
    known = dict.fromkeys(family.sizing for family in FAMILIES if family.sizing is not None)
    return [rule for rule in known if is_illegibly_tall(image.size, rule) and compute_seen_size(size, rule) == size]
