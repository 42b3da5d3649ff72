"""The documentation site: it has every Markdown file, refuses a link or an anchor that leads nowhere, two builds
are equal, and in Chromium, from a file and over HTTP, wide and narrow, it can be searched by keyboard and loads
without an error and without horizontal overflow. docc's part is left out; script/docs builds it in CI."""

import functools
import hashlib
import http.server
import os
import pathlib
import shutil
import subprocess
import sys
import threading

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from gateway import ROOT

sys.path.insert(0, str(ROOT / "docs/site"))
import openapi  # noqa: E402
import shell  # noqa: E402
import verify  # noqa: E402

BINARY = pathlib.Path(os.environ.get("COUNTERSIGN_BINARY", ROOT / ".build/debug/countersign"))
PYTHON = ROOT / ".build/docs-venv/bin/python"

# CI builds and verifies the site in script/docs.
pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> pathlib.Path:
    output = tmp_path_factory.mktemp("docs") / "site"
    done = subprocess.run([ROOT / "script/docs", "--guides", "--output", output, BINARY.parent], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return output


def build(root: pathlib.Path, *, output: pathlib.Path) -> subprocess.CompletedProcess:
    return subprocess.run([PYTHON, "-B", ROOT / "docs/site/build.py", "--root", root, output], capture_output=True, text=True,
                          check=False, timeout=60)


def digest(folder: pathlib.Path) -> str:
    total = hashlib.sha256()
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        total.update(f"{path.relative_to(folder)} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()


@pytest.fixture
def copy(site, tmp_path) -> pathlib.Path:
    """A repository of its own, with the documentation, to plant faults in."""
    root = tmp_path / "copy"
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    for name in listed:
        if (ROOT / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, root / name)
    subprocess.run(["git", "init", "-q", root], check=True)
    return root


def test_the_reference_is_the_program_s_own(site):
    assert "usage: countersign account add" in (site / "reference/commands.html").read_text()
    assert "COUNTERSIGN_LISTEN" in (site / "reference/settings.html").read_text()
    offered = subprocess.run([BINARY, "openapi", "admin"], capture_output=True, check=False).returncode == 0
    assert ("<code>GET /" in (site / "reference/api-admin.html").read_text()) == offered


def test_an_api_becomes_a_page(tmp_path):
    described = {
        "info": {"title": "Example", "description": "Has `code`."}, "servers": [{"url": "/api/v1"}],
        "paths": {"/apps/{name}": {"post": {
            "operationId": "apps.add", "summary": "Add <an> app", "security": [{"token": ["apps:write"]}],
            "parameters": [{"name": "name", "in": "path", "required": True, "schema": {"type": "string", "maxLength": 9}}],
            "requestBody": {"content": {"application/json": {"schema": {"type": "object", "required": ["key"], "properties": {
                "key": {"enum": ["a", "b"]}, "any": True, "list": {"type": "array", "items": {
                    "type": "object", "properties": {"inner": {"$ref": "#/components/schemas/Problem"}}}}}}}}},
            "responses": {"200": {"description": "Added", "content": {"application/json": {"schema": True}}},
                          "409": {"$ref": "#/components/responses/Conflict"}}}}},
        "components": {"schemas": {"Problem": {"type": "object", "properties": {"code": {"type": ["string", "null"]}}}},
                       "responses": {"Conflict": {"description": "Exists already"}}},
    }
    made = openapi.document(described)
    for expected in ("<code>POST /apps/{name}</code>", "Add &lt;an&gt; app", "token: apps:write", "string (length at most 9)",
                     "<code>list[].inner</code>", '<a href="#schema-Problem">Problem</a>', "Exists already", "string or null",
                     "one of <code>a</code>, <code>b</code>", "Has <code>code</code>."):
        assert expected in made.html
    assert [each.heading for each in made.sections] == ["", "POST /apps/{name}"]
    for name in ("assets/site.css", "assets/keys.js"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    for name in ("index.html", "search.html"):
        (tmp_path / name).write_text(shell.page(title="Example", place=name, body=made.html, groups=[]))
    assert verify.problems(tmp_path) == []


def test_two_builds_are_equal(copy, tmp_path):
    for name in ("one", "two"):
        done = build(copy, output=tmp_path / name)
        assert done.returncode == 0, done.stderr
    assert digest(tmp_path / "one") == digest(tmp_path / "two")


def test_what_leads_nowhere_is_refused_with_file_and_line(copy, tmp_path):
    page = copy / "docs/operate/log.md"
    lines = len(page.read_text().splitlines())
    page.write_text(page.read_text() + "\n[a](no-page.md)\n[b](log.md#no-heading)\n![c](https://example.com/c.png)\n\n<b>bold</b>\n")
    (copy / "docs/unlisted.md").write_text("# Unlisted\n")
    done = build(copy, output=tmp_path / "site")
    assert done.returncode == 1
    assert not (tmp_path / "site").exists()
    for expected in (f"docs/operate/log.md:{lines + 2}: no-page.md: no such file",
                     f"docs/operate/log.md:{lines + 3}: log.md#no-heading: no such heading",
                     f"docs/operate/log.md:{lines + 4}: https://example.com/c.png: expected an image of the repository",
                     f"docs/operate/log.md:{lines + 6}: HTML '<b>'; expected Markdown",
                     "docs/unlisted.md: in no list of docs/site/readers.toml"):
        assert f"docs: {expected}" in done.stderr


@pytest.mark.parametrize(("planted", "expected"), [
    ('<a href="gone.html">x</a>', "gone.html: no such file in the site"), ('<p onclick="x()">x</p>', "attribute 'onclick'"),
    ('<a href="index.html#gone">x</a>', "index.html#gone: no such anchor"), ("<script>x()</script>", "inline script"),
    ('<script src="https://example.com/a.js"></script>', "https://example.com/a.js: loaded from elsewhere"),
])
def test_a_fault_in_a_page_is_found(tmp_path, planted, expected):
    (tmp_path / "assets").mkdir()
    for name in ("assets/site.css", "assets/keys.js"):
        (tmp_path / name).touch()
    for name in ("index.html", "search.html"):
        (tmp_path / name).write_text(shell.page(title="Title", place=name, body="<h1>Title</h1>", groups=[]))
    assert verify.problems(tmp_path) == []
    page = tmp_path / "index.html"
    page.write_text(page.read_text().replace("<footer>", f"{planted}<footer>"))
    found = verify.problems(tmp_path)
    assert len(found) == 1 and found[0].startswith("index.html:") and expected in found[0], found


def test_wrong_arguments_are_refused():
    done = subprocess.run([ROOT / "script/docs", "--guides", "--output", "docs"], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2 and "docs is not a site" in done.stderr


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def addresses(site):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield {"file": site.as_uri(), "http": f"http://127.0.0.1:{server.server_address[1]}"}
    server.shutdown()


@pytest.fixture(scope="module")
def browser():
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    yield driver
    driver.quit()


def resize(browser, *, width: int) -> None:
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False})


@pytest.mark.parametrize("scheme, width", [("file", 1280), ("http", 360)])
def test_pages_fit_and_load_without_an_error(addresses, browser, scheme, width):
    resize(browser, width=width)
    for page in ("index.html", "docs/protocol.html", "docs/operate/metrics.html", "docs/operate/settings.html", "docs/glossary.html",
                 "docs/lab.html", "reference/settings.html", "reference/commands.html", "search.html?q=replay"):
        browser.get(f"{addresses[scheme]}/{page}")
        overflow = browser.execute_script("return document.documentElement.scrollWidth - innerWidth")
        assert overflow <= 0, f"{page}: {overflow} pixels too wide"
        assert [each for each in browser.get_log("browser") if each["level"] == "SEVERE"] == []
        assert len(browser.find_elements(By.CSS_SELECTOR, "main h1")) == 1


@pytest.mark.parametrize("scheme, width", [("file", 1280), ("http", 360)])
def test_search_by_keyboard(addresses, browser, scheme, width):
    resize(browser, width=width)
    browser.get(f"{addresses[scheme]}/docs/operate/log.html")
    browser.find_element(By.TAG_NAME, "body").send_keys("/")
    assert browser.switch_to.active_element.get_attribute("id") == "q"
    browser.switch_to.active_element.send_keys("replay guard", Keys.ENTER)
    WebDriverWait(browser, 10).until(lambda each: each.find_elements(By.CSS_SELECTOR, "#results a"))
    places = [each.get_attribute("href") for each in browser.find_elements(By.CSS_SELECTOR, "#results a")]
    assert any("redis" in place for place in places), places
    browser.find_element(By.ID, "q").send_keys(Keys.ARROW_DOWN)
    assert browser.switch_to.active_element.get_attribute("href") == places[0]
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    WebDriverWait(browser, 10).until(lambda each: each.current_url == places[0])
    assert [each for each in browser.get_log("browser") if each["level"] == "SEVERE"] == []


def test_what_is_searched_for_never_becomes_html(addresses, browser):
    browser.get(f"{addresses['http']}/search.html?q=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E")
    assert browser.find_element(By.ID, "state").text == "0 sections"
    assert browser.find_elements(By.CSS_SELECTOR, "main img") == []


def test_the_first_stop_of_the_keyboard_skips_the_navigation(addresses, browser):
    browser.get(f"{addresses['http']}/docs/start.html")
    browser.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    skip = browser.switch_to.active_element
    assert skip.text == "Skip to the content"
    skip.send_keys(Keys.ENTER)
    assert browser.switch_to.active_element.get_attribute("id") == "content"
