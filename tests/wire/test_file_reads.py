"""What an agent reads as text stays exact: nothing is taken out of the result of a call that reads a text file."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest

from sightline.model.scene import Json, ToolCall
from sightline.wire import ANTHROPIC, GEMINI, MODEL_MESSAGE, OPENAI_CHAT, OPENAI_RESPONSES, Codec
from sightline.wire.file_reads import FileRead, classify_file_read, find_file_path
from sightline.wire.json_tree import PlainTexts
from tests.requirements import requirement
from tests.wire.bodies import body, lower_body, read, result, text, tool, user

RAW = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)) * 40
B64 = b64encode(RAW).decode()
URL = f"data:image/png;base64,{B64}"
FILES: dict[str, str] = {
    "/a/icons.json": json.dumps({"icon": URL, "n": 1}),
    "/a/plot.ipynb": json.dumps({"cells": [{"outputs": [{"data": {"image/png": B64}}]}]}, indent=1),
    "/a/log.jsonl": json.dumps({"a": 1}) + "\n" + json.dumps({"png": B64}),
    "/a/parts.json": json.dumps([text("x"), {"type": "image", "data": B64, "mimeType": "image/png"}]),
    "/a/result.txt": f'Screenshot taken\n[{{"type":"image","data":"{B64}","mimeType":"image/png"}}]',
    "/a/notes.py": f"x = ImageContent(type='image', data='{B64}', mimeType='image/png')",
    "/a/value.py": str({"type": "image", "data": B64}),
    "/a/shot.b64": B64,
    "/a/url.txt": URL,
    "/a/buffer.json": json.dumps({"type": "Buffer", "data": list(RAW)}),
    "/a/page.html": f'<img src="{URL}">',
    "/a/Makefile": json.dumps({"png": B64}),
    "C:\\a\\icons.JSON": json.dumps({"icon": URL}),
}
PICTURE = json.dumps({"png": B64})
# Commands that print a text file, although no list has all of their programs.
PRINTING = [
    "python3 -c \"print(open('a.json').read())\"",
    "python3 -c \"print(open('shoot.py').read())\"",
    "python3 - <<'EOF'\nfrom pathlib import Path\nprint(Path('a.json').read_text())\nEOF",
    "node -e \"console.log(require('fs').readFileSync('a.json','utf8'))\"",
    "node -e \"console.log(require('fs').readFileSync('shot.js','utf8'))\"",
    "node <<'JS'\nconsole.log(require('fs').readFileSync('a.json','utf8'))\nJS",
    "perl -ne 'print' a.json",
    "ruby -e \"puts File.read('a.json')\"",
    "php -r 'echo file_get_contents(\"a.json\");'",
    "curl -s file:///p/a.json",
    "find . -name a.json -exec cat {} +",
    "find . -name '*.json' | xargs cat",
    "ssh host cat shoot.py",
    "xxd a.json",
    "base64 -d a.b64",
    "jq . a.json",
    "awk 1 a.json",
    "sed -n 1,20p a.json",
    "sort a.json",
    "dd if=/p/a.foo",
    'echo "$(<a.json)"',
    "while read -r l; do echo $l; done < a.json",
    "docker exec web cat /app/a.json",
    "python -m json.tool < a.json",
    "bash <<EOF\ncat a.json\nEOF",
    "[IO.File]::ReadAllText('C:\\p\\a.json')",
    "unzip -p x.zip a.json",
]
# Commands whose result may be an image.
OTHERS = [
    "python shot.py",
    "cd /p && python3 shot.py --config conf.json",
    "uv run shot.py",
    "node shot.mjs page.html",
    "./shot.sh a.json",
    "C:\\p\\shot.exe a.json",
    "bash shot.sh",
    "python3 -c \"print(b64encode(open('shot.png','rb').read()))\"",
    "python3 -c \"page.goto('file:///p/page.html'); print(page.screenshot())\"",
    "node -e \"require('./shot.js')()\"",
    "python3 - <<'EOF'\nsubprocess.run(['python', 'shot.py'])\nEOF",
    "node -e 'fetch(u).then(console.log)'",
    "wkhtmltoimage page.html - | base64",
    "cat notes | base64",
    "cat a.json; base64 icon.png",
    'echo "$(python shoot.py)"; cat a.json',
    "npx playwright screenshot file:///p/page.html -",
    "curl https://example.com/a.json",
    "find . -name '*.png' -exec base64 {} +",
]


def classify(name: str, arguments: dict[str, Json]) -> FileRead:
    return classify_file_read(ToolCall("c1", name, find_file_path(arguments, PlainTexts()), arguments))


def build(arguments: Json, content: str, name: str = "read_file") -> list[tuple[Codec, Json]]:
    """Return a request of each wire, in which a call with these arguments has this result."""
    given = json.dumps(arguments)
    chat: Json = {"id": "c1", "type": "function", "function": {"name": name, "arguments": given}}
    use: Json = {"type": "tool_use", "id": "c1", "name": name, "input": arguments}
    call: Json = {"type": "function_call", "call_id": "c1", "name": name, "arguments": given}
    gemini: Json = {"functionCall": {"id": "c1", "name": name, "args": arguments}}
    response: Json = {"functionResponse": {"id": "c1", "name": name, "response": {"output": content}}}
    sdk: Json = {"type": "tool-call", "toolCallId": "c1", "toolName": name, "input": arguments}
    brought: Json = {
        "type": "tool-result",
        "toolCallId": "c1",
        "toolName": name,
        "output": {"type": "text", "value": content},
    }
    return [
        (OPENAI_CHAT, body({"role": "assistant", "tool_calls": [chat]}, {**tool("c1"), "content": content})),
        (ANTHROPIC, body({"role": "assistant", "content": [use]}, user(result("c1", text(content))))),
        (OPENAI_RESPONSES, {"input": [call, {"type": "function_call_output", "call_id": "c1", "output": content}]}),
        (GEMINI, {"contents": [{"role": "model", "parts": [gemini]}, {"role": "user", "parts": [response]}]}),
        (MODEL_MESSAGE, body({"role": "assistant", "content": [sdk]}, {"role": "tool", "content": [brought]})),
    ]


def count_sights(arguments: Json, content: str, name: str = "read_file") -> set[int]:
    return {len(read(wire, given).scene.sights) for wire, given in build(arguments, content, name)}


@requirement("rescue.file_text", "law.11", "law.1")
@pytest.mark.parametrize("path", FILES)
def test_the_text_of_a_file_stays_exact(path: str) -> None:
    for wire, given in build({"path": path}, FILES[path]):
        assert read(wire, given).scene.sights == ()
        assert lower_body(wire, given, []) == given


@requirement("rescue.file_text", "law.4")
@pytest.mark.parametrize(
    "path", ["/a/shot.png", "shot.JPG", "/a/x.jxl", "/a/x.dng", "/a/report.pdf", "/a/film.mp4", "a.svg"]
)
def test_images_in_reads_of_images_and_documents_are_rescued(path: str) -> None:
    assert count_sights({"path": path}, PICTURE) == {1}


@requirement("rescue.file_text", "law.4")
@pytest.mark.parametrize(
    "arguments", [{}, {"url": "https://a.example/"}, {"path": ""}, {"path": 7}, {"command": "shot"}]
)
def test_the_result_of_a_call_without_a_file_is_rescued(arguments: Json) -> None:
    assert count_sights(arguments, PICTURE) == {1}


@requirement("rescue.file_text", "law.4")
@pytest.mark.parametrize(
    "name", ["render_html", "takeScreenshot", "mcp__browser__screenshot", "run_notebook", "PlotFile"]
)
def test_a_tool_that_renders_or_runs_a_file_does_not_read_it(name: str) -> None:
    assert count_sights({"path": "/a/page.html"}, PICTURE, name) == {1}
    assert count_sights({"path": "/a/page.html"}, PICTURE, "fs_read") == {0}
    assert count_sights({"path": "/a/runs.json"}, PICTURE, "currently_read") == {0}


@requirement("rescue.file_text", "law.11")
@pytest.mark.parametrize(
    "arguments",
    [
        {"paths": ["/a/b.json"]},
        {"paths": ["/a/b.png", "/a/b.json"]},
        {"files": [{"path": "/a/b.json", "lines": [1, 2]}]},
        {"file_paths": ["b.ipynb"]},
        {"command": "cat b.json"},
        {"command": "tac b.json"},
        {"command": "cd /a && cat 'b.json' 2>/dev/null"},
        {"command": "head -n 40 b.ipynb | tail -5"},
        {"command": ["bash", "-lc", "jq . b.json"]},
        {"cmd": ["/bin/cat", "b.json"]},
        {"CommandLine": "cat b.json"},
        {"operations": [{"path": "/a/b.json", "mode": "Line"}]},
        {"args": {"file": [{"path": "b.png"}, {"path": "b.json"}]}},
        {"args": {"file": {"path": "b.json"}}},
        {"command": "cat b.json icon.png"},
        {"command": "cat b.json # see icon.png"},
        {"command": "# see icon.png\ncat b.json"},
        {"command": "bash -lc 'cat b.json'"},
        {"command": 'sudo sh -c "cd /a && cat \\"b.json\\""'},
        {"command": ["sudo", "bash", "-lc", "cat b.json | head -5"]},
        {"command": ["cat b.json"]},
        {"command": "cmd /c type C:\\a\\b.json"},
        {"command": "sudo -u me cat b.json"},
        {"command": "LC_ALL=C cat b.json"},
        {"command": "timeout -k 1 5s cat b.json"},
        {"command": "env -i A=1 cat b.json"},
        {"command": "command cat b.json"},
        {"command": "(cat b.json)"},
        {"command": "(cd /a; cat b.json) 2>&1"},
        {"command": "{ cat b.json; }"},
        {"command": "jq . < b.json"},
        {"command": "grep -n 'a|b;c' b.json"},
        {"command": "git show HEAD:b.json"},
        {"command": "git diff"},
        {"command": "cd /a && git --no-pager diff HEAD~1 -- b.json | cat"},
        {"command": "diff b.json c.json"},
    ],
)
def test_several_files_and_shell_commands_that_print_them_count(arguments: Json) -> None:
    assert count_sights(arguments, PICTURE) == {0}


@requirement("rescue.file_text", "law.11")
@pytest.mark.parametrize(
    "key",
    "target_file TargetFile relative_path notebook_path AbsolutePath absolutePath abs_path file_name fileName uri "
    "document_path filePath File".split(),
)
def test_every_spelling_of_a_path_argument_counts(key: str) -> None:
    assert count_sights({"line": 3, key: "/a/b.json"}, PICTURE) == {0}
    assert count_sights({key: "file:///a/b.json"}, PICTURE) == {0}
    assert count_sights({key: "/a/b.png"}, PICTURE) == {1}


@requirement("rescue.file_text", "law.11")
@pytest.mark.parametrize(
    "name", ["run_shell_command", "execute_command", "exec_command", "run_terminal_cmd", "mcp__shell__exec"]
)
def test_a_tool_that_runs_a_command_reads_what_the_command_prints(name: str) -> None:
    assert count_sights({"command": "cat n.ipynb"}, PICTURE, name) == {0}
    assert count_sights({"command": "cat n.ipynb", "path": "/a"}, PICTURE, name) == {0}
    assert count_sights({"command": "cat n.png"}, PICTURE, name) == {1}
    assert count_sights({"command": "python shoot.py", "path": "/a"}, PICTURE, name) == {1}


@requirement("rescue.file_text", "law.11")
@pytest.mark.parametrize("name", ["print_file", "previewFile", "export_notes"])
def test_a_tool_that_prints_or_previews_a_text_file_reads_it(name: str) -> None:
    assert count_sights({"path": "/a/b.json"}, PICTURE, name) == {0}
    assert count_sights({"path": "/a/b.md"}, PICTURE, name) == {0}
    assert count_sights({"path": "/a/b.png"}, PICTURE, name) == {1}


@requirement("rescue.file_text", "law.4")
@pytest.mark.parametrize(
    "arguments",
    [
        {"paths": ["/a/b.png", "/a/c.jpg"]},
        {"paths": []},
        {"files": [7]},
        {"command": "cat b.png"},
        {"command": "cat b.json | python shoot.py"},
        {"command": "base64 b.png"},
        {"command": "python shoot.py b.json"},
        {"command": "cat"},
        {"command": []},
        {"command": "cat " + "x " * 3_000},
        {"command": "cat b.png # not b.json"},
        {"command": "cat b.png 2> /dev/null"},
        {"command": "head -c 900 'b.png'"},
        {"command": "grep -a IHDR b.png"},
        {"command": "git show HEAD:b.png"},
        {"command": "bash -lc 'cat b.png'"},
        {"command": "bash -lc 'cat b.json; python shoot.py'"},
        {"command": "sudo python shoot.py b.json"},
        {"command": "echo $(python shoot.py) && cat b.json"},
        {"command": "cat b.json & ./shoot"},
        {"command": "sh -c " * 600 + "cat b.json"},
        {"command": "'" * 4_000},
        {"command": "sudo"},
        {"command": "bash"},
        {"operations": ["click", {"type": "shoot"}, {"path": "b.png"}]},
        {"args": ["b.json"]},
        {"args": {"file": [{"path": "b.png"}]}},
        {"uri": "https://a.example/page"},
        {"notebook_path": ""},
    ],
)
def test_other_commands_read_no_text_file(arguments: Json) -> None:
    assert count_sights(arguments, PICTURE) == {1}


@requirement("rescue.file_text", "lower.foreign")
def test_image_blocks_are_not_the_text_of_a_file() -> None:
    block: dict[str, Json] = {"type": "image", "data": B64, "mimeType": "image/png"}
    for wire, given in build({"path": "/a/page.html"}, "x"):
        tree: Any = json.loads(json.dumps(given).replace('"x"', json.dumps([block])))
        if wire in (OPENAI_CHAT, OPENAI_RESPONSES, GEMINI):
            assert len(read(wire, tree).scene.sights) == 1, wire.name


@requirement("law.11")
def test_a_name_without_a_suffix_is_not_a_text_file() -> None:
    assert not classify("open_page", {"path": "/dashboard"})
    assert classify("read", {"path": "/a/Makefile"})


@requirement("rescue.file_text", "law.11")
@pytest.mark.parametrize("command", PRINTING)
def test_any_command_that_names_a_text_file_reads_it(command: str) -> None:
    assert classify("Bash", {"command": command})
    assert classify("shell", {"command": ["bash", "-lc", command]})


@requirement("rescue.file_text", "law.4")
@pytest.mark.parametrize("command", OTHERS)
def test_commands_that_run_a_script_or_use_an_image_read_no_text_file(command: str) -> None:
    assert not classify("Bash", {"command": command})
    assert not classify("shell", {"command": ["bash", "-lc", command]})


@requirement("rescue.file_text", "law.11")
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("run_read", {"path": "/p/a.json"}),
        ("run_read", {"path": "/p/n.ipynb"}),
        ("read_and_convert", {"path": "/p/a.json"}),
        ("dump_snapshot", {"path": "/p/a.json"}),
        ("tool_7", {"input": "/p/a.json"}),
        ("load_state", {"options": {"src": "a.json"}}),
        ("fs", {"op": "read", "location": "~/a.foo"}),
        ("checkout", {"object": "HEAD:conf/a.json"}),
        ("read_resource", {"url": "file:///p/a.json"}),
        ("execute", {"command": "cat", "args": ["/p/a.json"]}),
        ("run_javascript", {"script": "return require('fs').readFileSync('n.ipynb', 'utf8')"}),
        ("terminal", {"input": "cat a.json\n"}),
        ("Grep", {"pattern": "ImageContent", "path": "tests/"}),
        ("search_files", {"path": "src", "regex": "png"}),
        ("codebase_grep", {"query": "png"}),
        ("codebase_search", {"query": "png"}),
        ("find_in_files", {"text": "png"}),
        ("git_diff_unstaged", {"repo_path": "/p"}),
        ("Read", {"file_path": "/p/icons"}),
        ("read_text_file", {"path": "/p/.git/config"}),
        ("bash", {"command": "hg diff"}),
    ],
)
def test_an_unknown_tool_that_is_given_a_text_file_reads_it(name: str, arguments: dict[str, Json]) -> None:
    assert classify(name, arguments)
    content = json.dumps([{"type": "image", "data": B64, "mimeType": "image/png"}])
    is_certain = classify(name, arguments) is FileRead.CERTAIN
    assert count_sights(arguments, FILES["/a/icons.json"], name) == {0}
    assert count_sights(arguments, content, name) == {0 if is_certain else 1}


@requirement("rescue.file_text", "law.4")
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("run_notebook", {"path": "/p/n.ipynb"}),
        ("capture_page", {"file": "/p/index.html"}),
        ("execute_script", {"script_path": "/p/shot.js"}),
        ("render_chart", {"spec": "spec.json"}),
        ("take_picture", {"selector": "div.card", "host": "node1.local", "version": "1.2.3"}),
        ("convert", {"input": "/a/b.json", "output": "/a/b.png"}),
        ("generate_image", {"prompt": "A cat reads notes.txt"}),
        ("evaluate", {"code": "plt.savefig('x.png'); print(open('a.json').read())"}),
        ("evaluate", {"expression": "console.log( response.json() )"}),
        ("navigate", {"url": "https://example.com/a.json"}),
        ("shell", {"command": {"a.json": 1}}),
        ("tool_7", {"input": "a.json" * 1000}),
        ("read_media_file", {"path": "/tmp/clipboard"}),
        ("read_page", {"path": "/dashboard"}),
        ("read", {"path": "x"}),
        ("search_images", {"query": "a red door"}),
        ("find_element", {"text": "Save the file"}),
        ("screenshot_diff", {"name": "login"}),
        ("visual_diff", {"name": "login"}),
    ],
)
def test_other_tools_that_are_given_a_file_do_not_read_it(name: str, arguments: dict[str, Json]) -> None:
    assert not classify(name, arguments)


@requirement("rescue.file_text", "rescue.media")
@pytest.mark.parametrize("content", ["[%s]", "%s", '{"content":[%s]}'])
def test_content_of_a_library_is_rescued_where_the_program_is_unknown(content: str) -> None:
    part = json.dumps({"type": "image", "data": B64, "mimeType": "image/png"})
    assert count_sights({"command": "shoot a.json"}, content % part) == {1}
    assert count_sights({"command": "shoot a.json"}, content % PICTURE) == {0}
    assert count_sights({"command": "cat a.json"}, content % part) == {0}


@requirement("rescue.file_text", "law.11")
@pytest.mark.parametrize("kind", ["local_shell_call", "shell_call", "custom_tool_call"])
def test_shells_and_custom_tools_of_responses_read_files_too(kind: str) -> None:
    for text_run, count in (("cat a.json", 0), (PRINTING[0], 0), ("python shoot.py", 1)):
        shapes: dict[str, dict[str, Json]] = {
            "local_shell_call": {"action": {"type": "exec", "command": ["bash", "-lc", text_run]}},
            "shell_call": {"action": {"commands": ["cd /a", text_run]}},
            "custom_tool_call": {"name": "run", "input": text_run},
        }
        output: Json = [{"stdout": PICTURE, "stderr": ""}] if kind == "shell_call" else PICTURE
        answer: Json = {"type": f"{kind}_output", "call_id": "c1", "output": output}
        tree: Json = {"input": [{"type": kind, "call_id": "c1", **shapes[kind]}, answer]}
        assert len(read(OPENAI_RESPONSES, tree).scene.sights) == count
