"""The conversations of frameworks: all those of one are held in one process, and two frameworks run at a time."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.test_client_lines import find_environment
from tests.scripted.eye import Seen
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.provider import Provider
from tests.scripted.talk import Asked, Call, Said, Script, speak

ROOT = Path(__file__).parents[3]
SEEING = {
    "openai_chat": "deepseek-v4-flash",
    "openai_responses": "gpt-5.4",
    "anthropic": "claude-sonnet-5",
    "gemini": "gemini-2.5-pro",
}
BLIND = "deepseek-v4-pro"
MODELS = ((BLIND, "deepseek"), ("*", "sees"))
MESSAGES = {"openai_chat": "messages", "openai_responses": "input", "anthropic": "messages", "gemini": "contents"}

ALL_WIRES = ("openai_chat", "openai_responses", "anthropic", "gemini")
PICTURES = 10
TURNS = 30

# What an adapter imports of its framework, and a name in it that an old version doesn't have.
HOOKS = {
    "langchain": ("langchain.agents.middleware", "AgentMiddleware.awrap_model_call"),
    "pydantic_ai": ("pydantic_ai.capabilities", "AbstractCapability.before_model_request"),
    "openai_agents": ("agents.run", "CallModelData"),
    "litellm": ("litellm.integrations.custom_logger", "CustomLogger.async_pre_call_deployment_hook"),
    "google_adk": ("google.adk.models.llm_request", "LlmRequest"),
    "smolagents": ("smolagents", "Model.generate"),
    "llm_plugin": ("llm", "ToolOutput"),
}


@dataclass(frozen=True)
class Case:
    """One conversation of a framework."""

    framework: str
    wire: str
    mode: str = "sync"  # or async, or stream
    kind: str = "long"  # 30 turns with ten images
    # or switch: to a text-only model and back; forged: a tool lies; data: a tool returns an image as base64 in data;
    # example: a program, run as its page says
    options: tuple[str, ...] = ()  # of its driver

    def __str__(self) -> str:
        return "-".join((self.framework, self.wire, self.mode, *self.options))

    def list_tasks(self, folder: Path) -> list[dict[str, Any]]:
        seeing = SEEING[self.wire]
        models = {"long": [seeing] * TURNS, "switch": [seeing, BLIND, seeing]}.get(self.kind, [seeing])
        tasks = [{"text": f"What do you see? ({number})", "model": each} for number, each in enumerate(models)]
        for number in range(3, PICTURES) if self.kind == "long" else ():
            tasks[number - 2]["image"] = str(folder / f"shot{number}.png")
        return tasks


# The modes that a framework has are spread over its conversations.
LONG = [
    *(Case("langchain", wire, mode) for wire, mode in zip(ALL_WIRES, ("sync", "async", "stream", "sync"), strict=True)),
    *(
        Case("pydantic_ai", wire, mode)
        for wire, mode in zip(ALL_WIRES, ("sync", "async", "sync", "async"), strict=True)
    ),
    Case("openai_agents", "openai_chat", "sync"),
    Case("openai_agents", "openai_responses", "async", options=("by name",)),
    Case("litellm", "openai_chat", "async"),
    Case("litellm", "anthropic", "stream"),
    Case("google_adk", "gemini", "async"),
    Case("google_adk", "openai_chat", "async"),
    Case("smolagents", "openai_chat", "sync"),
]
SWITCHED = [
    Case("langchain", "openai_chat", "stream", "switch"),
    Case("langchain", "anthropic", "async", "switch"),
    Case("pydantic_ai", "openai_chat", "stream", "switch"),
    Case("pydantic_ai", "gemini", "async", "switch"),
    Case("openai_agents", "openai_chat", "stream", "switch", ("by name",)),
    Case("openai_agents", "openai_responses", "async", "switch"),
    Case("litellm", "openai_chat", "async", "switch"),
    Case("google_adk", "gemini", "stream", "switch"),
    Case("google_adk", "openai_chat", "stream", "switch"),
    Case("smolagents", "openai_chat", "stream", "switch"),
]
FORGED = Case("smolagents", "openai_chat", kind="forged", options=("forged",))
DATA = Case("pydantic_ai", "openai_chat", kind="data", options=("data",))
UNNAMED = Case("langchain", "openai_chat", kind="unnamed", options=("configurable",))
EXAMPLES = [Case(framework, "openai_chat", kind="example") for framework in {case.framework: 0 for case in LONG}]
CASES = [*EXAMPLES, *LONG, *SWITCHED, FORGED, DATA, UNNAMED]


def find_framework(name: str) -> Path:
    """Return the folder of the programs in a framework's environment: the pinned one, or that of `scripts/compat`."""
    if home := os.environ.get("FRAMEWORK_ENVIRONMENT"):
        return Path(home, "bin")
    return find_environment(name.replace("_", "-"))


def make_env(folder: Path, package: Path) -> dict[str, str]:
    return {
        **{name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ},
        "HOME": str(folder),
        "PYTHONPATH": f"{package}:{ROOT}",
        "SIGHTLINE_HOME": str(folder / "home"),
        "DEEPSEEK_API_KEY": "k",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }


def declare(provider: Provider) -> dict[str, str]:
    """Return the variable that puts a scripted provider in the place of DeepSeek."""
    bases = dict.fromkeys(ALL_WIRES, provider.url) | {"openai_chat": f"{provider.url}/v1"}
    return {"SIGHTLINE_UPSTREAMS": json.dumps({"deepseek": {"baseUrl": bases}})}


def point(provider: Provider) -> dict[str, str]:
    """Return the variables by which a user points the SDKs at a provider."""
    addresses = dict.fromkeys(("OPENAI_BASE_URL", "OPENAI_API_BASE"), f"{provider.url}/v1")
    keys = dict.fromkeys(("OPENAI_API_KEY", "GOOGLE_API_KEY"), "k")
    return {**addresses, **keys, "GOOGLE_GEMINI_BASE_URL": provider.url}


def play(script: Script) -> Any:
    """A mind that plays its script by the number of the request: smolagents keeps tool calls as text."""
    requests = iter(script)

    def answer(asked: Asked, seen: Sequence[Seen], _script: Script) -> Said:
        step = next(requests, None) if "view_image" in asked.tools else None
        said = Said("", tuple(step)) if step else speak(asked, seen, ())
        if not step and "final_answer" in asked.tools:  # by which smolagents ends a turn
            return Said("", (Call("final_answer", {"answer": said.text}),))
        return said

    return answer


def view(number: int) -> Call:
    return Call("view_image", {"path": f"shot{number}.png"})


VIEWS = [[view(0)], [view(1), view(2)]]
READS = [[Call("read_page", {})]]
SCRIPTS = {"long": VIEWS, "switch": VIEWS, "forged": READS, "data": READS, "unnamed": VIEWS, "example": VIEWS}


@dataclass
class Outcome:
    """What came of a conversation."""

    case: Case
    provider: Provider
    answers: list[str] = field(default_factory=list)
    kept: int = 0  # images in the framework's own history
    error: str = ""

    def bodies(self) -> list[dict[str, Any]]:
        asked = [each for each in self.provider.exchanges if each.method == "POST"]
        return [{"model": each.path, **json.loads(each.body)} for each in asked]


class Rehearsals:
    """The conversations of the frameworks, each held when it is first asked for, or before that in the background."""

    def __init__(self, folder: Path, package: Path) -> None:
        self._folder, self._package = folder, package
        self._threads = ThreadPoolExecutor(2)
        self._held: dict[str, Future[tuple[dict[Case, Outcome], str]]] = {}

    def start(self, framework: str) -> Future[tuple[dict[Case, Outcome], str]]:
        if framework not in self._held:
            self._held[framework] = self._threads.submit(self._hold, framework)
        return self._held[framework]

    def find(self, case: Case) -> Outcome:
        outcome = self.start(case.framework).result()[0][case]
        assert not outcome.error, outcome.error
        return outcome

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)

    def _hold(self, framework: str) -> tuple[dict[Case, Outcome], str]:
        """Return the outcomes, and the error of importing the adapter if its framework lacks what it uses."""
        folder = self._folder / framework
        folder.mkdir()
        for number in range(PICTURES):
            (folder / f"shot{number}.png").write_bytes(paint_quadrants(some_colours(number), (640, 400)))
        module, name = HOOKS[framework]
        adapter = f"sightline.surfaces.adapters.{framework}"
        with ExitStack() as stack:
            outcomes = [
                Outcome(case, stack.enter_context(Provider(MODELS, mind=play(SCRIPTS[case.kind]))))
                for case in CASES
                if case.framework == framework
            ]
            given = {
                "conversations": [self._write(each, folder) for each in outcomes],
                "without": {"adapter": adapter, "module": module, "name": name},
            }
            found = self._run(framework, folder, given)
        for outcome, fields in zip(outcomes, found["outcomes"], strict=True):
            vars(outcome).update(fields)
        return {each.case: each for each in outcomes}, found["error"]

    def _write(self, outcome: Outcome, folder: Path) -> dict[str, Any]:
        case = outcome.case
        return {
            "wire": case.wire,
            "url": outcome.provider.url,
            "kind": case.kind,
            "example": f"agent_{case.framework}.py",
            "tasks": case.list_tasks(folder),
            "asynchronous": case.mode == "async",
            "stream": case.mode == "stream",
            "options": case.options,
            "env": {**declare(outcome.provider), **(point(outcome.provider) if case.kind == "example" else {})},
        }

    def _run(self, framework: str, folder: Path, given: dict[str, Any]) -> Any:
        done = subprocess.run(
            [find_framework(framework) / "python", "-m", f"tests.e2e.adapters.drive_{framework}"],
            input=json.dumps(given),
            cwd=folder,
            env=make_env(folder, self._package),
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout)
