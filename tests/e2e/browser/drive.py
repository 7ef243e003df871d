"""Drives the inspector in a real browser, in an environment of its own: drive.py STEP[,STEP] URL TICKET FOLDER AXE

Prints one JSON object with what each step has seen. Each function below that takes a visit is a step.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, Route, sync_playwright

TITLES = {"conversations": "Conversations", "charts": "Charts", "try": "Try it", "settings": "Settings and seers"}
VIEWS = tuple(TITLES)
MORE = "count => document.querySelectorAll('a.conversation').length > count"
NOON = 1_785_585_600  # in the pictures, 1 August 2026
MOST = 20_000  # milliseconds to wait for something that must appear

Seen = dict[str, Any]

READ = """async url => {
    try {
        return await (await fetch(`${url}/sightline/api/conversations`, { credentials: "include" })).text()
    } catch (error) { return "refused" }
}"""
WRITE = """async url => {
    const body = JSON.stringify({ provider: "zai", given: true, confirmed: true })
    const options = { method: "POST", mode: "no-cors", credentials: "include", body }
    try { await fetch(`${url}/sightline/api/consent`, options); return "sent" } catch (error) { return "refused" }
}"""
ANSWERED = """text => document.querySelector(".answer .text") && document.querySelector(".answer").innerText !== text"""
LOADED = "selector => [...document.querySelectorAll(selector)].every(image => image.complete && image.naturalWidth)"


class Visit:
    """A page with a session, and what went wrong on it."""

    def __init__(self, browser: Browser, url: str, ticket: str, folder: Path, axe: Path) -> None:
        self.browser, self.url, self.folder, self.axe = browser, url, folder, axe
        self.context = browser.new_context(
            viewport={"width": 1280, "height": 800}, reduced_motion="reduce", locale="en-US", timezone_id="UTC"
        )
        self.context.set_default_timeout(MOST)
        self.page = self.context.new_page()
        self.errors: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda line: self.errors.append(line.text) if line.type == "error" else None)
        self.page.goto(f"{url}/sightline/#ticket={ticket}")
        self.page.wait_for_selector("main h1")

    def start_over(self) -> None:
        """Show the first page as it is after the link was opened."""
        self.errors = []
        self.page.set_viewport_size({"width": 1280, "height": 800})
        self.page.goto("about:blank")
        self.page.goto(f"{self.url}/sightline/")
        self.page.wait_for_selector("main h1")

    def open(self, view: str) -> Page:
        self.page.evaluate("name => { location.hash = `#/${name}` }", view)
        self.page.wait_for_selector(f"#nav a[href='#/{view}'][aria-current]")
        self.page.locator("main h1", has_text=TITLES[view]).wait_for()
        return self.page

    def fix_times(self) -> None:
        """Replace the times in answers of the API, so that the same record gives the same pictures every day."""

        def answer(route: Route) -> None:
            response = route.fetch()
            value = response.json()
            for number, each in enumerate([*value.get("conversations", []), value.get("summary", {})]):
                each |= {"started_at": NOON - 7200 * number, "ended_at": NOON + 3000 - 7200 * number}
            for number, each in enumerate(value.get("requests", [])):
                each["at"] = NOON + 75 * number
            route.fulfill(response=response, json=value)

        self.page.clock.set_fixed_time(NOON + 3240)
        self.page.route(re.compile("/api/conversation"), answer)

    def shoot(self, name: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=self.folder / f"{name}.png")

    def check_access(self) -> list[str]:
        """Return the serious faults that axe finds on the page as it is now."""
        self.page.evaluate(self.axe.read_text())
        found = self.page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
        return [
            f"{each['id']}: {each['nodes'][0]['html'][:160]}"
            for each in found["violations"]
            if each["impact"] in ("serious", "critical")
        ]

    def check_both(self, name: str) -> dict[str, list[str]]:
        """Return the serious faults of the page in light and in dark."""
        found = {name: self.check_access()}
        self.page.emulate_media(color_scheme="dark")
        found[f"{name}, dark"] = self.check_access()
        self.page.emulate_media(color_scheme="light")
        return found

    def open_conversation(self, client: str = "deepseek-chat") -> None:
        self.open("conversations")
        self.page.locator("a.conversation", has_text=client).first.click()
        self.page.wait_for_selector(".thumb img")


def wait_until(page: Page, condition: str, *values: object) -> None:
    """Wait until an expression holds. The page's policy forbids `wait_for_function`, which uses eval there."""
    for _ in range(MOST // 50):
        if page.evaluate(condition, *values):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"it never happened: {condition}")


def tour(visit: Visit) -> Seen:
    """Open each view with a recorded conversation, check it in light and dark, and take its picture."""
    page = visit.page
    visit.fix_times()
    page.reload()
    seen: Seen = {"axe": {}, "wide": {}, "large": {}}
    page.wait_for_selector("a.conversation")
    for view in VIEWS:
        visit.open(view)
        page.wait_for_selector("figure.chart" if view == "charts" else "h1")
        seen["axe"] |= visit.check_both(view)
        visit.shoot(view)
    visit.open_conversation()
    seen["turns"], seen["charts"] = page.locator(".turn").count(), page.locator("figure.chart").count()
    wait_until(page, LOADED, ".turn:first-child .thumb img")
    page.locator(".edits summary").first.click()
    seen["axe"] |= visit.check_both("conversation")
    page.locator(".edits summary").first.click()
    page.evaluate("scrollTo(0, 0)")
    visit.shoot("conversation")
    page.mouse.move(0, 0)
    page.locator("main h2").evaluate("heading => scrollTo(0, heading.getBoundingClientRect().top + scrollY - 70)")
    wait_until(page, LOADED, ".turn:first-child .thumb img")
    visit.shoot("timeline")
    seen |= _look_at_images(visit)
    page.emulate_media(color_scheme="dark")
    visit.shoot("dark")
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 360, "height": 760})
    for view in (*VIEWS, "conversation"):
        visit.open_conversation() if view == "conversation" else visit.open(view)
        seen["wide"][view] = page.evaluate("document.documentElement.scrollWidth")
        visit.shoot("small" if view == "conversations" else f"check-small-{view}")
    page.set_viewport_size({"width": 3840, "height": 2160})
    for view in ("conversations", "conversation"):
        visit.open_conversation() if view == "conversation" else visit.open(view)
        seen["large"][view] = page.evaluate("document.documentElement.scrollWidth")
    visit.shoot("check-large")
    return seen


def _look_at_images(visit: Visit) -> Seen:
    """Open an image that was refitted, move the slider by keyboard, and see what is drawn on the original."""
    page = visit.page
    page.locator(".thumb.refitted").first.click()
    page.wait_for_selector("dialog blockquote")
    page.wait_for_selector("dialog img.sent")
    wait_until(page, LOADED, "dialog img")
    slider = page.locator("dialog input[type=range]")
    slider.focus()
    page.keyboard.press("ArrowRight")
    axe = visit.check_both("image")
    seen: Seen = {
        "axe_of_image": axe,
        "slider": slider.input_value(),
        "sent": page.locator("dialog .stage p").inner_text(),
    }
    visit.shoot("image")
    page.keyboard.press("Escape")
    page.locator(".thumb.told", has_text="shot-1.png").first.click()
    page.wait_for_selector("dialog .boxes.found")
    seen |= {"boxes": page.locator(".boxes.found rect").count(), "crops": page.locator(".boxes.crops rect").count()}
    wait_until(page, LOADED, "dialog img")
    visit.shoot("check-drawn")
    page.get_by_role("button", name="Part 1").click()
    page.wait_for_selector("dialog .pair .boxes.crops.on rect")
    wait_until(page, LOADED, "dialog img")
    seen["views"] = page.locator("dialog .pair img").count()
    visit.shoot("check-view")
    page.keyboard.press("Escape")
    return seen


def clicks(visit: Visit) -> Seen:
    """Count the clicks from the first page to why an image was described and what it cost."""
    page, count = visit.page, 0
    page.wait_for_selector("a.conversation")
    for target in ("a.conversation:has-text('deepseek-chat')", ".thumb.told"):
        page.locator(target).first.click()
        count += 1
    page.wait_for_selector("dialog .cost")
    return {
        "clicks": count,
        "why": page.locator("dialog .verdict").inner_text(),
        "cost": page.locator("dialog .cost").inner_text(),
    }


def keyboard(visit: Visit) -> Seen:
    """Go the same way by keyboard alone, and back."""
    page = visit.page
    page.wait_for_selector("a.conversation")
    _tab_to(page, "a.conversation")
    page.keyboard.press("Enter")
    page.wait_for_selector(".thumb")
    _tab_to(page, ".thumb")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open] .cost")
    inside = page.evaluate("document.querySelector('dialog').contains(document.activeElement)")
    page.keyboard.press("Escape")
    return {
        "inside": inside,
        "closed": page.locator("dialog[open]").count() == 0,
        "back": page.evaluate("document.activeElement.matches('.thumb')"),
    }


def _tab_to(page: Page, selector: str) -> None:
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"{selector} can't be reached by keyboard")


def hostile(visit: Visit) -> Seen:
    """Open everything that hostile names are shown on; each would change the title if it ran."""
    page = visit.page
    page.wait_for_selector("a.conversation")
    page.evaluate("window.alert = () => { document.title = 'run' }")
    page.locator("a.conversation").first.click()
    page.wait_for_selector(".thumb img")
    for details in page.locator("details summary").all():
        details.click()
    page.locator(".thumb").first.click()
    page.wait_for_selector("dialog blockquote")
    return {
        "title": page.title(),
        "text": page.locator("dialog h2").inner_text(),
        "said": page.locator("dialog blockquote pre").first.inner_text(),
        "scripts": page.locator("main script, dialog script, dialog b, main b").count(),
    }


def empty(visit: Visit) -> Seen:
    """Open each view with an empty record."""
    seen: Seen = {"text": visit.page.locator("main").inner_text(), "axe": visit.check_access()}
    for view in VIEWS:
        visit.open(view)
    visit.open("conversations")
    visit.page.wait_for_selector(".empty")
    visit.shoot("empty")
    return seen


def live(visit: Visit) -> Seen:
    """Wait for a conversation that is filed while the page is open. The test files it when it reads `ready`."""
    visit.page.wait_for_selector(".live.on")
    before = visit.page.locator("a.conversation").count()
    visit.page.locator("a.conversation").first.focus()
    print("ready", flush=True)
    wait_until(visit.page, MORE, before)
    focused = visit.page.evaluate("document.activeElement.matches('a.conversation')")
    return {"before": before, "after": visit.page.locator("a.conversation").count(), "focused": focused}


def many(visit: Visit) -> Seen:
    """Open a record with many conversations and a conversation with many images."""
    page = visit.page
    page.wait_for_selector("a.conversation")
    listed = page.locator("a.conversation").count()
    page.locator("button.more").click()
    wait_until(page, MORE, listed)
    page.evaluate("scrollTo(0, 0)")
    page.locator("a.conversation", has_text="big").first.click()
    page.wait_for_selector(".thumb")
    shown = page.locator(".thumb").count()
    page.locator(".all summary").click()
    page.locator(".all button.more").click()
    wait_until(page, "() => document.querySelectorAll('.all .thumb').length === 200")
    return {"listed": listed, "images": shown, "more": page.locator(".all .thumb").count()}


def other_origin(visit: Visit) -> Seen:
    """Try from a page of another origin of this machine, whose address is in the folder's name file."""
    page = visit.context.new_page()
    page.goto((visit.folder / "other.txt").read_text())
    read = page.evaluate(READ, visit.url)
    wrote = page.evaluate(WRITE, visit.url)
    return {"read": read, "wrote": wrote}


def try_image(visit: Visit) -> Seen:
    """Try an image: choose it, mark a part with the mouse, ask."""
    page = visit.open("try")
    page.set_input_files("#picker", visit.folder / "given.png")
    page.wait_for_selector(".layers img")
    page.locator("button.primary").click()
    page.wait_for_selector(".answer .text, .answer .error")
    whole = page.locator(".answer").inner_text()
    visit.shoot("try")
    box = page.locator(".layers").bounding_box()
    assert box
    page.mouse.move(box["x"] + 2, box["y"] + 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + box["height"] * 0.1, steps=4)
    page.mouse.up()
    marked = page.locator(".crop").is_visible()
    page.locator("button.primary").click()
    wait_until(page, ANSWERED, whole)
    return {"whole": whole, "part": page.locator(".answer").inner_text(), "marked": marked}


def exported(visit: Visit) -> Seen:
    """Open an exported file from the disk."""
    page = visit.page
    page.goto((visit.folder / "exported.html").as_uri())
    page.wait_for_selector(".thumb img")
    page.locator(".thumb").first.click()
    page.wait_for_selector("dialog .verdict")
    return {
        "title": page.title(),
        "turns": page.locator(".turn").count(),
        "pictures": page.evaluate("[...document.images].filter(i => i.src.startsWith('data:')).length"),
    }


STEPS: dict[str, Callable[[Visit], Seen]] = {
    each.__name__: each
    for each in (tour, clicks, keyboard, hostile, empty, live, many, other_origin, try_image, exported)
}


def main() -> None:
    steps, url, ticket, folder, axe = sys.argv[1:]
    with sync_playwright() as playwright:
        chromium = shutil.which("chromium")
        options = ["--no-sandbox", "--force-color-profile=srgb"]
        browser = playwright.chromium.launch(executable_path=chromium, args=options)
        visit = Visit(browser, url, ticket, Path(folder), Path(axe))
        seen: Seen = {}
        for step in steps.split(","):
            visit.start_over()
            seen[step] = {**STEPS[step](visit), "errors": visit.errors}
        browser.close()
    print(json.dumps(seen), flush=True)


if __name__ == "__main__":
    main()
