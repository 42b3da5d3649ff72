"""Manual pages are made from the tables of commands and settings, and two readers of man(7) take them without a warning."""

import json
import re
import subprocess

from gateway import run
from needs import programs


def commands() -> list[list[str]]:
    """The words of each command, from the overview."""
    overview = run("--help").out.split("\n\n")[2]
    names = [re.match(r"  ([a-z -]+?)(?:  |$)", line) for line in overview.splitlines()]
    return [name[1].split() for name in names if name]


def page(*words: str) -> str:
    done = run("man", *words)
    assert done.returncode == 0, done.err
    return done.out


def rendered(text: str) -> str:
    """As a reader sees it, in one paragraph."""
    done = subprocess.run(["groff", "-man", "-Tutf8", "-P-cbou"], input=text.encode(), capture_output=True, check=True)
    return re.sub(r"\s+", " ", re.sub(r"‐\s+", "", done.stdout.decode()))


def facts(*words: str) -> dict[str, str]:
    """What a page says of each setting below its meaning, in one line, by the option."""
    text = re.sub(r"\\f[BIR]", "", page(*words)).replace("\\-", "-").split("\n.SH OPTIONS\n")[1].split("\n.SH ")[0]
    items = [item.split("\n.br\n") for item in re.split(r"^\.TP\n", text, flags=re.M)]
    return {item[0].split()[0]: " ".join(item[1].split()) for item in items if len(item) == 2}


@programs("mandoc", "groff")
def test_each_page_is_accepted_without_a_warning():
    all_commands = commands()
    assert len(all_commands) > 60 and ["serve"] in all_commands and ["app", "policy"] in all_commands
    for words in [[], *all_commands]:
        text = page(*words).encode()
        checked = subprocess.run(["mandoc", "-Tlint", "-Wstyle"], input=text, capture_output=True, check=False)
        assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b""), words
        formatted = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z"], input=text, capture_output=True, check=False)
        assert (formatted.returncode, formatted.stderr) == (0, b""), words
        assert text.isascii()


@programs("groff")
def test_a_page_has_what_the_help_has():
    for words in (["serve"], ["request"], ["app", "policy"], ["reload"]):
        shown, text = rendered(page(*words)), run(*words, "--help").out
        options = re.findall(r"^  (?:-\w, |    )(--[a-z-]+)", text, re.M)
        assert len(options) > 2
        assert [option for option in options if option not in shown] == []
        assert text.splitlines()[0] in shown
        if words == ["serve"]:
            assert {setting["option"] for setting in json.loads(run("settings", "--json").out)} <= set(options)
    assert all(" ".join(words) in rendered(page()) for words in commands())


@programs("groff")
def test_the_page_of_serve_has_each_setting():
    shown = rendered(page("serve"))
    settings = json.loads(run("settings", "--json").out)
    assert len(settings) > 60
    of_option = facts("serve")
    for setting in settings:
        assert setting["variable"] in shown
        parts = [f"default: {setting['default']}"] if setting["default"] else []
        parts += [f"unit: {setting['unit']}"] if setting["unit"] else []
        assert of_option[setting["option"]] == "; ".join([*parts, f"applied by {setting['applied_by']}"])
    assert set(of_option) == {setting["option"] for setting in settings}
    assert "default: 16384; unit: bytes; applied by a reload" in shown


def test_a_page_of_no_command():
    done = run("man", "app", "polcy")
    assert done.returncode == 2 and "did you mean `app policy`?" in done.err


def test_settings_in_text_and_json():
    text, settings = run("settings").out, json.loads(run("settings", "--json").out)
    for setting in settings:
        assert f"{setting['option']} {setting['value']}\n" in text
        assert setting["key"] == setting["name"].replace("-", "_") and setting["variable"].startswith("COUNTERSIGN_")
    printed = json.loads(run("serve", "--print-config").out)
    assert [setting["key"] for setting in settings] == list(printed)
    # What is printed where nothing is set is the default.
    shown = {key: value for key, value in printed.items() if value is not None}
    assert {setting["key"]: setting["default"] for setting in settings if setting["default"]} == {
        key: str(value) for key, value in shown.items()}
