"""The console: a link signs one browser in, once; each page shows and does what the session's scopes allow, and what it does is what the
command of the same name does; a page of another site, another session's form, a stranger, and names with markup in them get nothing.
Every page is free of axe's findings, light, dark and narrow. In Chromium where a browser matters, and over plain HTTP elsewhere."""

import calendar
import fcntl
import html
import http.client
import http.server
import json
import os
import pathlib
import re
import socket
import subprocess
import threading
import time
import urllib.parse

import pytest
from axe_core_python.selenium import Axe
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait

import needs
import processes
from gateway import run
from person import Person
from ports import reserve_port
from signing import SecretAsText
from test_metrics import Administered
from waiting import HANGS, until

COOKIE = "__Host-countersign"
MARKUP = "<img src=x onerror=alert(1)>"
needs_namespaces = needs.machine(
    subprocess.run(["unshare", "--net", "--uts", "true"], capture_output=True, check=False).returncode == 0, "namespaces of its own")


class Deployment(Administered):
    """A gateway with an app, a release, and accounts whose names, devices and requests try to be markup."""

    def prepare(self) -> None:
        self.add_app("demo", require="session", registration="open")
        self.key = self.add_release("demo")
        self.old = self.add_release("demo", "android", "0.9")
        for name in ("anna", MARKUP):
            self.admin("account", "add", "demo", name)

    def link(self, *options: object) -> str:
        return self.admin("console", "--admin", f"127.0.0.1:{self.admin_port}", *options).out.strip()

    def tokens(self) -> list[dict]:
        return json.loads(self.admin("token", "list", "--json").out)["tokens"]

    def audit(self) -> list[dict]:
        return json.loads(self.admin("audit", "list", "--last", 100, "--json").out)["records"]

    def visit(self, *options: object) -> "Visitor":
        """A session of the console, without a browser."""
        visitor = Visitor(self.admin_port)
        code = urllib.parse.urlsplit(self.link(*options)).query.removeprefix("code=")
        answer = visitor.post("/console/sign-in", {"code": code})
        assert answer.status == 303, answer.text
        visitor.cookie = answer.getheader("Set-Cookie").partition(";")[0]
        return visitor


class Visitor:
    """A client that sends exactly what it is told."""

    def __init__(self, port: int):
        self.port, self.cookie = port, ""

    def send(self, method: str, path: str, *, body: str = "", **fields: str):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {name.replace("_", "-"): value for name, value in fields.items()}
        if self.cookie:
            headers.setdefault("Cookie", self.cookie)
        connection.request(method, path, body or None, headers)
        answer = connection.getresponse()
        answer.text = answer.read().decode()
        connection.close()
        return answer

    def get(self, path: str, **fields: str):
        return self.send("GET", path, **fields)

    def post(self, path: str, form: dict[str, str], **fields: str):
        fields.setdefault("Origin", f"http://127.0.0.1:{self.port}")
        return self.send("POST", path, body=urllib.parse.urlencode(form),
                         Content_Type="application/x-www-form-urlencoded", **fields)

    def form_token(self) -> str:
        return re.search(r'name="form" value="(\w+)"', self.get("/").text)[1]

    def do(self, operation: str, **values: str):
        return self.post(f"/console/do/{operation}", {"form": self.form_token(), **values})


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with Deployment(tmp_path_factory.mktemp("console")) as deployment:
        deployment.prepare()
        yield deployment


@pytest.fixture(scope="module")
def chromium():
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    options.accept_insecure_certs = True
    driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    yield driver
    driver.quit()


class Browser:
    """An operator's Chromium on the console."""

    def __init__(self, driver, deployment: Deployment):
        self.driver, self.deployment = driver, deployment
        # The page of the test before asks its server for figures, which may have stopped.
        driver.get("about:blank")
        driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
        driver.get_log("browser")

    def sign_in(self, *options: object) -> "Browser":
        self.driver.get(self.deployment.link(*options))
        self.click("Sign in")
        assert self.heading == "Overview"
        return self

    def open(self, path: str) -> "Browser":
        self.driver.get(f"http://127.0.0.1:{self.deployment.admin_port}{path}")
        return self

    @property
    def heading(self) -> str:
        return self.driver.find_element(By.TAG_NAME, "h1").text

    @property
    def text(self) -> str:
        return self.driver.find_element(By.TAG_NAME, "main").text

    def find(self, name: str):
        """The link or the button of that accessible name, in the page's own part."""
        found = [each for each in self.driver.find_elements(By.CSS_SELECTOR, "main a, main button, header a, header button")
                 if each.accessible_name == name]
        assert found, f"no {name!r} in {self.text}"
        return found[0]

    def click(self, name: str) -> "Browser":
        """Follows a link or sends a form, and waits for the page that comes."""
        before = self.driver.find_element(By.TAG_NAME, "html")
        self.find(name).click()
        WebDriverWait(self.driver, 20).until(lambda driver: driver.find_element(By.TAG_NAME, "html") != before)
        return self

    def search(self, text: str) -> "Browser":
        self.driver.find_element(By.ID, "search").send_keys(text)
        return self.click("Find")

    def fill(self, **values: str) -> "Browser":
        for name, value in values.items():
            field = self.driver.find_element(By.ID, f"f-{name}")
            if field.tag_name == "select":
                Select(field).select_by_visible_text(value)
            else:
                field.clear()
                field.send_keys(value)
        return self

    @staticmethod
    def text_of(markup: str) -> str:
        return html.unescape(re.sub(r"<[^>]*>", "", markup))

    def errors(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser") if "favicon" not in entry["message"]]


@pytest.fixture
def browser(chromium, served):
    return Browser(chromium, served)


# MARK: Signing in


def test_a_link_signs_in_once(served):
    link = urllib.parse.urlsplit(served.link("--name", "night-shift", "--for", "30m", "--scope", "apps:read,server:read"))
    visitor = Visitor(served.admin_port)
    # What fetches links in advance does not use them up.
    for _ in range(3):
        assert 'name="code"' in visitor.get(f"{link.path}?{link.query}").text
    code = link.query.removeprefix("code=")
    answer = visitor.post("/console/sign-in", {"code": code})
    assert answer.status == 303 and answer.getheader("Location") == "/"
    cookie, *rest = answer.getheader("Set-Cookie").split("; ")
    assert cookie.startswith(f"{COOKIE}=cst_") and {"Path=/", "Secure", "HttpOnly", "SameSite=Strict"} <= set(rest)
    assert visitor.post("/console/sign-in", {"code": code}).status == 403
    visitor.cookie = cookie
    assert visitor.get("/").status == 200
    token = next(token for token in served.tokens() if token["name"] == "night-shift")
    assert token["kind"] == "console" and token["scopes"] == ["apps:read", "server:read"]
    assert 1700 < token["expires"] - time.time() <= 1800
    record = served.audit()[-1]
    assert record["action"] == "console.sign-in" and record["actor"] == {"kind": "token", "id": token["id"], "name": "night-shift"}


def test_of_many_at_once_one_is_signed_in(served):
    code = urllib.parse.urlsplit(served.link("--name", "race")).query.removeprefix("code=")
    statuses = []
    threads = [threading.Thread(target=lambda: statuses.append(Visitor(served.admin_port).post("/console/sign-in", {"code": code}).status))
               for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [303] + [403] * 7
    assert len([token for token in served.tokens() if token["name"] == "race"]) == 1


def test_a_link_ends_after_a_minute(served):
    code = urllib.parse.urlsplit(served.link()).query.removeprefix("code=")
    path = served.data / "api-tokens"
    tokens = json.loads(path.read_text())
    link = next(token for token in tokens["tokens"] if token["kind"] == "link")
    assert 50 < link["expires"] - time.time() <= 60 and link["digest"] not in code
    link["expires"] = int(time.time())
    path.write_text(json.dumps(tokens))
    assert Visitor(served.admin_port).post("/console/sign-in", {"code": code}).status == 403


def test_each_secret_opens_its_own_door_alone(served):
    visitor = served.visit()
    secret = visitor.cookie.partition("=")[2]
    stranger = Visitor(served.admin_port)
    assert stranger.get("/api/v1/apps", Authorization=f"Bearer {secret}").status == 401
    program = json.loads(served.admin("token", "add", "program", "--scope", "apps:read", "--json").out)["token"]
    code = urllib.parse.urlsplit(served.link()).query.removeprefix("code=")
    for other in (program, code, (served.data / "admin-token").read_text().strip(), ""):
        assert stranger.get("/", Cookie=f"{COOKIE}={other}").status == 401
        assert stranger.get("/api/v1/apps", Authorization=f"Bearer {other}").status == (200 if other == program else 401)
    assert stranger.post("/console/sign-in", {"code": program}).status == 403
    assert stranger.post("/console/sign-in", {"code": secret}).status == 403
    # Two cookies of the name: one of them was put there by somebody.
    assert stranger.get("/", Cookie=f"{visitor.cookie}; {visitor.cookie}").status == 401
    assert visitor.get("/").status == 200


def test_sessions_end(served):
    visitor = served.visit("--name", "one")
    answer = visitor.post("/console/sign-out", {"form": visitor.form_token()})
    assert answer.status == 303 and "Max-Age=0" in answer.getheader("Set-Cookie")
    assert visitor.get("/").status == 401 and "one" not in [token["name"] for token in served.tokens()]
    assert served.audit()[-1]["action"] == "console.sign-out"
    # By a name all of that name end, also a link that waits.
    visitors, link = [served.visit("--name", "two"), served.visit("--name", "two")], served.link("--name", "two")
    assert len(json.loads(served.admin("token", "revoke", "two", "--json").out)["revoked"]) == 3
    assert [visitor.get("/").status for visitor in visitors] == [401, 401]
    assert visitors[0].post("/console/sign-in", {"code": urllib.parse.urlsplit(link).query.removeprefix("code=")}).status == 403
    # Whoever signs in anew leaves no session behind.
    visitor = served.visit("--name", "three")
    code = urllib.parse.urlsplit(served.link("--name", "four")).query.removeprefix("code=")
    assert visitor.post("/console/sign-in", {"code": code}).status == 303
    assert "three" not in [token["name"] for token in served.tokens()]


def test_a_session_that_is_not_used_ends(served):
    visitor = served.visit("--name", "idle")
    assert visitor.get("/").status == 200
    path = served.data / "api-tokens"

    def change(**members: object) -> None:
        tokens = json.loads(path.read_text())
        next(token for token in tokens["tokens"] if token["name"] == "idle").update(members)
        path.write_text(json.dumps(tokens))

    now = int(time.time())
    change(created=now - 3600, used=now - 1700)
    # An open page that asks for figures is no use.
    assert visitor.get("/console/live").status == 200
    assert next(token for token in json.loads(path.read_text())["tokens"] if token["name"] == "idle")["used"] == now - 1700
    assert visitor.get("/").status == 200
    assert next(token for token in json.loads(path.read_text())["tokens"] if token["name"] == "idle")["used"] >= now
    change(used=now - 1900)
    assert visitor.get("/console/live").status == 401 and visitor.get("/").status == 401
    assert "idle" not in [token["name"] for token in served.tokens()]


@needs.machine(os.getuid() == 0, "root, who can give a folder away")
def test_only_the_owner_of_the_folder_makes_links(served):
    """A file of another user's would lock the server out."""
    owner = served.data.stat().st_uid
    os.chown(served.data, 65534, -1)
    try:
        for command in (("console",), ("token", "add", "x", "--scope", "apps:read"), ("token", "revoke", "x")):
            done = run(*command, "--data", served.data)
            assert done.returncode == 1 and "countersign-admin" in done.err, done.err
    finally:
        os.chown(served.data, owner, -1)
    assert served.visit().get("/").status == 200


def test_a_held_lock_keeps_nobody_signed_in(served):
    visitor = served.visit()
    token = visitor.form_token()
    with open(served.data / "api-tokens.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        answer = visitor.post("/console/sign-out", {"form": token})
        # It cannot be taken out of the file; the session has ended all the same.
        assert answer.status == 303 and "Max-Age=0" in answer.getheader("Set-Cookie")
    assert visitor.get("/").status == 401


def test_nothing_without_a_session(served):
    stranger = Visitor(served.admin_port)
    for path in ("/", "/console/apps", "/console/live", "/console/search?q=anna", "/console/do/lockAccount?app=demo&account=anna",
                 "/console/apps/demo/accounts/anna/export", "/console/nothing"):
        answer = stranger.get(path)
        assert answer.status == 401 and "anna" not in answer.text.replace("search?q=anna", ""), path
    assert stranger.post("/console/do/lockAccount", {"app": "demo", "account": "anna", "confirmation": "anna"}).status == 401
    # The command says what is wrong with its options.
    for options, said in ((("--for", "2d"), "5m to 24h"), (("--scope", "all"), "expected one of"), (("--scope", "apps:read", "--read-only"), "one of them"),
                          (("--name", "a b"), "expected 1 to 64")):
        done = run("console", "--data", served.data, *options)
        assert done.returncode == 2 and said in done.err, done.err


# MARK: Attacks


def test_a_page_of_another_site_does_nothing(served):
    visitor = served.visit()
    form = {"form": visitor.form_token(), "app": "demo", "account": "anna", "confirmation": "anna"}
    here = f"http://127.0.0.1:{served.admin_port}"
    for fields in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Origin": f"http://127.0.0.1:{reserve_port()}"},
                   {"Origin": here, "Sec-Fetch-Site": "cross-site"}, {"Origin": here, "Sec-Fetch-Site": "same-site"}):
        assert visitor.post("/console/do/lockAccount", form, **fields).status == 403, fields
        assert visitor.post("/console/sign-in", {"code": "cst_x"}, **fields).status == 403
    assert visitor.send("POST", "/console/do/lockAccount", body=urllib.parse.urlencode(form)).status == 403
    # Nor one of another session of the console.
    for other in ("", "0" * 32, served.visit().form_token()):
        assert visitor.post("/console/do/lockAccount", form | {"form": other}).status == 403
    # A reading method changes nothing.
    assert visitor.get(f"/console/do/lockAccount?{urllib.parse.urlencode(form)}").status == 200
    assert json.loads(served.admin("account", "show", "demo", "anna", "--json").out)["state"] == "active"


def test_another_name_of_this_machine_is_refused(served, tmp_path):
    visitor = served.visit()
    assert visitor.get("/", Host="rebound.example").status == 421
    assert visitor.get("/", Host="localhost").status == 200
    with Deployment(tmp_path, "--admin-hosts", "console.example") as named:
        visitor = named.visit()
        assert visitor.get("/", Host="console.example:8444").status == 200
        assert visitor.get("/", Host="rebound.example").status == 421
        # A reload takes another name.
        named.stop()
        settings = tmp_path / "settings.json"
        settings.write_text('{"admin_hosts": "first.example"}')
        named.options = ("--config", settings)
        named.start()
        visitor = named.visit()
        assert visitor.get("/", Host="first.example").status == 200 and visitor.get("/", Host="second.example").status == 421
        settings.write_text('{"admin_hosts": "second.example"}')
        named.admin("reload")
        assert visitor.get("/", Host="first.example").status == 421 and visitor.get("/", Host="second.example").status == 200


@needs_namespaces
@needs.programs("ip", "nsenter", "curl")
def test_other_machines_need_tls(tmp_path):
    """In a network namespace of its own, whose address is not of the loopback network."""
    deployment = Deployment(tmp_path)
    deployment.command = lambda *options: [*Administered.command(deployment, *options)[:-1], f"0.0.0.0:{deployment.admin_port}"]
    script = 'ip link set lo up && ip address add 192.0.2.1/32 dev lo && exec "$@"'
    deployment.start(prefix=("unshare", "--net", "sh", "-c", script, "sh"))
    try:
        def status(address: str) -> str:
            return subprocess.run(["nsenter", "-t", str(deployment.process.pid), "--net", "curl", "-s", "-o", "/dev/null", "-w", "%{http_code}",
                                   f"http://{address}:{deployment.admin_port}/"], capture_output=True, text=True, check=True, timeout=60).stdout
        assert status("127.0.0.1") == "401"
        assert status("192.0.2.1") == "403"
    finally:
        deployment.stop()


def test_over_tls(tmp_path, chromium):
    with Deployment(tmp_path, "--admin-tls", "on") as deployment:
        link = deployment.admin("console", "--admin", f"127.0.0.1:{deployment.admin_port}").out.strip()
        # The command does not know the server's options.
        chromium.get(link.replace("http:", "https:"))
        chromium.find_element(By.CSS_SELECTOR, "main button").click()
        # The heading of the page before may be found, and be gone when it is read.
        WebDriverWait(chromium, 10, ignored_exceptions=[StaleElementReferenceException]).until(
            lambda browser: browser.find_element(By.TAG_NAME, "h1").text == "Overview")
        done = run("console", "--data", deployment.data, environment={"COUNTERSIGN_ADMIN_TLS": "on"})
        assert done.out.startswith("https://127.0.0.1:8444/")
    done = run("serve", "--check-config", "--admin-tls", "on", "--tls", "off", "--data", tmp_path / "data")
    assert done.returncode == 2 and "--admin-tls on: expected --tls" in done.out


def test_a_session_does_what_its_scopes_allow(served):
    visitor = served.visit("--scope", "apps:read")
    assert visitor.get("/console/apps/demo").status == 200
    overview = visitor.get("/").text
    assert "Releases by app" not in overview and "Refused in the last hour" not in overview and "Last changes" not in overview
    for path in ("/console/releases/" + served.key.key_id, "/console/apps/demo/accounts", "/console/apps/demo/accounts/anna", "/console/audit",
                 "/console/refusals", "/console/refusals/unsigned", "/console/events/x", "/console/server", "/console/doctor", "/console/operators",
                 "/console/audit/verification", "/console/apps/demo/accounts/anna/export", "/console/do/lockAccount?app=demo&account=anna"):
        answer = visitor.get(path)
        assert answer.status == 403 and "does not have the scope" in answer.text, path
    assert visitor.do("lockAccount", app="demo", account="anna", confirmation="anna").status == 403
    assert visitor.do("changePolicy", app="demo", name="debug", value="on").status == 403
    figures = json.loads(visitor.get("/console/live").text.partition("data: ")[2])
    assert figures["texts"] == {} and figures["chart"] == ""
    # A reader of everything is shown no form, and can send none.
    reader = served.visit("--read-only")
    for path in ("/", "/console/apps", "/console/apps/demo", "/console/apps/demo/policy", "/console/apps/demo/accounts/anna", "/console/server"):
        answer = reader.get(path)
        assert answer.status == 200 and "/console/do/" not in answer.text, path
    for operation in ("lockAccount", "retireRelease", "addApp", "reload", "eraseAccount", "revokeSession"):
        assert reader.do(operation, app="demo", account="anna", key=served.key.key_id, confirmation="anna").status == 403, operation


@needs_namespaces
def test_names_are_never_markup(browser, served, tmp_path):
    """Names of an account, a device and an operator, a path, and values of forms that come back."""
    hostname = ("unshare", "--uts", "sh", "-c", f'printf %s "{MARKUP}" > /proc/sys/kernel/hostname && exec "$@"', "sh")
    person = Person(served, tmp_path / "person", "<script>alert(2)</script>")
    person.signs_up()
    person.prefix = hostname
    person.logs_in()
    served.send(f"GET /<script>alert(3)</script> HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n\r\n".encode())
    served.send(f"GET /a?<b> HTTP/1.1\r\nHost: <script>alert(4)</script>\r\nUser-Agent: {MARKUP}\r\n\r\n".encode())
    browser.sign_in()
    account = urllib.parse.quote(person.name, safe="")
    pages = ["/", "/console/apps", "/console/apps/demo", "/console/apps/demo/accounts", f"/console/apps/demo/accounts/{account}",
             f"/console/apps/demo/accounts/{urllib.parse.quote(MARKUP, safe='')}", "/console/refusals", "/console/audit",
             f"/console/search?q={urllib.parse.quote(MARKUP)}", f"/console/do/lockAccount?app=demo&account={account}",
             f"/console/do/setRoute?app=demo&prefix={urllib.parse.quote(MARKUP)}", f"/console/do/{urllib.parse.quote(MARKUP, safe='')}",
             f"/console/refusals/{urllib.parse.quote(MARKUP, safe='')}", f"/console/events/{urllib.parse.quote(MARKUP, safe='')}"]
    refused = browser.open("/console/refusals").driver.find_elements(By.CSS_SELECTOR, "tbody a")
    pages += [urllib.parse.urlsplit(each.get_attribute("href")).path for each in refused]
    seen = ""
    for page in pages:
        browser.open(page)
        assert browser.driver.execute_script("return document.scripts.length") == 1, page
        assert browser.driver.execute_script("return document.querySelectorAll('img, iframe, [onerror]').length") == 0, page
        seen += browser.text
    assert MARKUP in seen and person.name in seen and "alert(3)" in seen
    sessions = browser.open(f"/console/apps/demo/accounts/{account}").text
    assert MARKUP in sessions, "the device's name is not shown, so that nothing was tested"
    assert [entry for entry in browser.errors() if "404" not in entry and "403" not in entry] == []


def test_the_console_cannot_be_framed(browser, served):
    browser.sign_in()
    console = f"http://127.0.0.1:{served.admin_port}/"

    class Frame(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(f'<iframe src="{console}"></iframe>'.encode())

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Frame)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    browser.driver.get(f"http://127.0.0.1:{server.server_port}/")
    until(lambda: any("frame-ancestors" in message for message in browser.errors()), "Chromium refuses the frame")
    server.shutdown()


def test_every_answer_has_the_fields_that_protect_it(served):
    visitor = served.visit()
    code = visitor.form_token()
    answers = [visitor.get(path) for path in ("/", "/console/apps", "/console/nothing", "/console/live", "/console/sign-in", "/console/do/lockAccount")]
    answers += [visitor.post("/console/do/addApp", {"form": code, "app": "x y"}), visitor.post("/console/do/addApp", {}), Visitor(served.admin_port).get("/")]
    for answer in answers:
        policy = answer.getheader("Content-Security-Policy")
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
        assert answer.getheader("Cache-Control") == "no-store" and answer.getheader("X-Content-Type-Options") == "nosniff"
    style = re.search(r'href="(/console/assets/\S+\.css)"', answers[0].text)[1]
    answer = visitor.get(style)
    assert answer.status == 200 and "immutable" in answer.getheader("Cache-Control")
    assert visitor.send("PUT", "/console/apps").status == 405


def test_forms_are_read_strictly(served):
    visitor = served.visit()
    token = visitor.form_token()
    assert visitor.get("/console").status == 303 and visitor.get("/console/").getheader("Location") == "/"
    assert visitor.post("/console/sign-in", {"code": "x" * 5_000}).status == 413
    for body in (f"form={token}&form={token}", f"form={token}&app=%zz", f"form={token}&app=a%00b", f"form={token}&&"):
        answer = visitor.send("POST", "/console/do/addApp", body=body, Origin=f"http://127.0.0.1:{served.admin_port}")
        assert answer.status == 400, body
    assert visitor.post("/console/do/addApp", {"form": token, "app": "x" * 70_000}).status == 413
    assert visitor.post("/console/do/deleteEverything", {"form": token}).status == 404
    # A value is never an option of the command.
    answer = visitor.do("addApp", app="--json")
    assert answer.status == 400 and "a name that begins with a letter or a digit" in answer.text
    assert visitor.do("addApp", app="good", require="nothing").status == 400


# MARK: What operators do


def test_a_version_is_retired_behind_a_preview_and_taken_back(browser, served):
    key = served.old.key_id
    browser.sign_in().click(f"Retire {key}")
    assert browser.heading == "Retire the release" and "If it were retired now" in browser.text and "Live sessions" in browser.text
    browser.fill(at="+7d", update_url="https://app.example/update", confirmation="something else").click("Retire the release")
    assert f"type `{key}` to confirm" in browser.text
    assert browser.driver.find_element(By.ID, "f-update_url").get_attribute("value") == "https://app.example/update"
    browser.fill(confirmation=key).click("Retire the release")
    assert browser.heading == "demo android 0.9" and "https://app.example/update" in browser.text
    listed = json.loads(served.admin("release", "list", "demo", "--json").out)["releases"]
    assert next(each for each in listed if each["key_id"] == key)["update_url"] == "https://app.example/update"
    record = served.audit()[-1]
    assert record["action"] == "release.retire" and record["actor"]["kind"] == "token"
    browser.click(f"Undo {key}").click("Undo the retirement")
    assert "live until" not in browser.text and served.audit()[-1]["action"] == "release.undo"


def test_a_person_is_helped(browser, served, tmp_path):
    person = Person(served, tmp_path / "person", "berta").signs_up()
    person.logs_in()
    browser.sign_in().search("berta")
    assert browser.heading == "berta"
    session = json.loads(served.admin("session", "list", "demo", "berta", "--json").out)["sessions"][0]["session"]
    # Its session by its id, too.
    browser.open(f"/console/search?q={session}")
    assert browser.heading == "berta" and session in browser.text
    browser.click(f"End berta {session}").click("End the session")
    assert browser.heading == "berta" and "revoked" in browser.text
    assert person.run("request", "/").returncode == 1
    browser.click("Lock berta").fill(confirmation="berta").click("Lock the account")
    assert "locked" in browser.text
    assert person.run("login", "--account", "berta", "--password-stdin", stdin="correct horse battery staple\n").returncode == 1
    browser.click("Unlock berta").click("Unlock the account")
    assert "active" in browser.text
    browser.click("Make a reset code berta").click("Make a reset code")
    code = re.search(r"\b(?:[0-9A-Z]{4}-){4}[0-9A-Z]{4}\b", browser.text)[0]
    assert "it is not shown again" in browser.text
    # Times are shown as times: of a result, and of the record of it.
    until_when = browser.driver.find_element(By.CSS_SELECTOR, "main dd time")
    ends = calendar.timegm(time.strptime(until_when.get_attribute("datetime"), "%Y-%m-%dT%H:%M:%SZ"))
    assert 0 < ends - time.time() <= 3600 and re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", until_when.text), until_when.text
    assert f"until: {until_when.text}" in Browser.text_of(served.visit().get("/console/audit").text)
    assert f"until={until_when.get_attribute('datetime')}" in served.admin("audit", "list", "--last", 10).out
    done = person.run("signup", "--account", "berta", "--reset-code-stdin", "--password-stdin", stdin=f"{code}\nanother long password\n")
    assert done.returncode == 0, done.err
    browser.click("Go on").click("Set the user id berta").fill(user_id="42").click("Set the user id")
    assert json.loads(served.admin("account", "show", "demo", "berta", "--json").out)["user_id"] == 42
    export = served.visit().get("/console/apps/demo/accounts/berta/export")
    assert json.loads(export.text)["account"]["account"] == "berta" and "attachment" in export.getheader("Content-Disposition")
    # An export is in both logs, whatever its path looks like; a page that was read is not.
    def exports() -> list[str]:
        return [event["message"] for event in served.events() if event.get("log") == "console" and "xport" in event.get("message", "")]
    until(lambda: exports() and "/berta/export: 200" in exports()[-1], "the log says so")
    encoded = served.visit().get("/console/apps/demo/accounts/berta/%65xport")
    assert json.loads(encoded.text)["account"]["account"] == "berta"
    until(lambda: "/berta/%65xport: 200" in exports()[-1], "the log says so once more")
    # The second visit signed in between them.
    assert [record["action"] for record in served.audit()[-3:]].count("account.export") == 2
    browser.click("Erase berta").fill(confirmation="berta").click("Erase the person")
    assert "Done." in browser.text
    assert run("account", "show", "demo", "berta", "--data", served.data).returncode == 1


@pytest.mark.parametrize("name", [".", "..", "~..", "~", "%2e%2e", "a/../b"])
def test_names_that_paths_do_not_hold_have_pages(browser, served, name):
    """A browser resolves `.` and `..`; the pages, actions and exports of such accounts work all the same."""
    app = "dots"
    for words in (("app", "add", app), ("account", "add", app, name)):
        done = run(*words, "--data", served.data)
        assert done.returncode == 0 or words[0] == "app", done.err
    browser.sign_in().click("Apps").driver.find_element(By.LINK_TEXT, app).click()
    browser.click("Accounts").driver.find_element(By.CSS_SELECTOR, "table").find_element(By.LINK_TEXT, name).click()
    assert browser.heading == name and "active" in browser.text
    browser.click(f"Lock {name}").fill(confirmation=name).click("Lock the account")
    assert browser.heading == name and "locked" in browser.text
    assert json.loads(served.admin("account", "show", app, name, "--json").out)["state"] == "locked"
    target = browser.driver.find_element(By.CSS_SELECTOR, "main a[download]").get_attribute("href")
    export = served.visit().get(target.partition(f":{served.admin_port}")[2])
    assert json.loads(export.text)["account"]["account"] == name
    browser.click(f"Unlock {name}").click("Unlock the account")
    assert browser.heading == name and "active" in browser.text
    browser.open("/console/audit").driver.find_element(By.LINK_TEXT, name).click()
    assert browser.heading == name and "No device is known." in browser.text


def test_an_app_is_set_up(browser, served):
    browser.sign_in().click("Apps").click("Add an app").fill(app="new-app", require="signed", settings="debug=on").click("Add an app")
    assert browser.heading == "new-app"
    browser.click("Add a release").fill(platform="ios", version="3.0").click("Add a release")
    secret = next(each.text for each in browser.driver.find_elements(By.CSS_SELECTOR, "dd code") if len(each.text) == 43)
    assert "it is not shown again" in browser.text
    browser.click("Go on").click("Set a route").fill(prefix="/pay", require="device", methods="POST, PUT", rate_account="5/minute", max_body="4096")
    browser.click("Set a route")
    routes = json.loads(served.admin("route", "list", "new-app", "--json").out)["routes"]
    assert routes[0]["methods"] == ["POST", "PUT"] and routes[0]["limits"] == {"rate-account": "5/minute", "max-body": "4096"}
    browser.click("Remove /pay POST,PUT").click("Remove the rule")
    assert "/pay" not in browser.text
    browser.click("Policy").click("Change window").fill(value="90s").click("Change the policy")
    shown = json.loads(served.admin("app", "policy", "new-app", "--json").out)["policy"]
    assert next(each for each in shown if each["key"] == "window")["is_set"]
    browser.click("Change window").fill(value="never").click("Change the policy")
    assert browser.driver.find_element(By.CSS_SELECTOR, "[role=alert]").text and browser.heading == "Change the policy"
    browser.fill(value="").click("Change the policy")
    shown = json.loads(served.admin("app", "policy", "new-app", "--json").out)["policy"]
    assert not next(each for each in shown if each["key"] == "window")["is_set"]
    browser.open("/console/apps/new-app").click("Begin maintenance").fill(confirmation="new-app").click("Begin maintenance")
    assert "This app is in maintenance" in browser.text
    browser.click("End maintenance").click("End maintenance")
    assert "This app is in maintenance" not in browser.text and secret not in browser.driver.page_source


def test_a_rule_is_changed_and_keeps_what_the_form_does_not_change(browser, served):
    served.admin("route", "set", "demo", "/limited", "--require", "signed", "--rate-account", "20/second", "--max-body", "4096", "--enforcement", "observe",
                 "--methods", "POST")
    before = json.loads(served.admin("route", "list", "demo", "--json").out)["routes"][0]
    browser.sign_in().open("/console/apps/demo")
    row = next(each for each in browser.driver.find_elements(By.TAG_NAME, "tr") if each.text.startswith("/limited"))
    browser.open(urllib.parse.urlsplit(row.find_element(By.LINK_TEXT, "Set a route").get_attribute("href"))._replace(scheme="", netloc="").geturl())
    browser.fill(require="session").click("Set a route")
    after = json.loads(served.admin("route", "list", "demo", "--json").out)["routes"][0]
    assert {**before, "require": "session", "observe_until": 0} == {**after, "observe_until": 0}, (before, after)
    served.admin("route", "remove", "demo", "/limited", "--methods", "POST")
    # Nothing is chosen for a new one.
    assert browser.open("/console/do/setRoute?app=demo").driver.find_element(By.ID, "f-require").get_attribute("value") == ""


def test_a_second_click_gets_the_first_ones_answer(served):
    visitor = served.visit()
    form = {"form": visitor.form_token(), "once": "a1b2", "app": "demo", "platform": "web", "version": "7.0"}
    first, second = (visitor.post("/console/do/addRelease", form) for _ in range(2))
    assert first.status == second.status == 200 and first.text.count("secret") and "not shown again" in second.text
    assert re.search(r"<code>(\S{43})</code>", first.text)[1] == re.search(r"<code>(\S{43})</code>", second.text)[1]
    assert visitor.post("/console/do/addRelease", form | {"once": "c3d4"}).status == 409


def test_doctor_holds_nothing_up(tmp_path):
    """Before a backend that takes connections and says nothing."""
    silent = socket.create_server(("127.0.0.1", 0))
    with Deployment(tmp_path, "--upstream", f"https://127.0.0.1:{silent.getsockname()[1]}") as deployment:
        visitor = deployment.visit("--read-only")
        statuses = []
        threads = [threading.Thread(target=lambda: statuses.append(visitor.get("/console/doctor").status)) for _ in range(4)]
        for thread in threads:
            thread.start()
        silent.settimeout(HANGS)
        begun, _ = silent.accept()
        assert visitor.get("/console/audit").status == 200
        assert len(statuses) < len(threads), "it waited for the doctor"
        for thread in threads:
            thread.join()
        assert 200 in statuses and 503 in statuses, statuses
    begun.close()
    silent.close()


def test_a_release_gets_a_next_key(browser, served):
    browser.sign_in().open(f"/console/releases/{served.old.key_id}").click(f"Add a next key {served.old.key_id}").click("Add a next key")
    assert "it is not shown again" in browser.text
    browser.click("Go on")
    assert "waits to be promoted" in browser.text
    browser.click(f"Drop the next key {served.old.key_id}").fill(confirmation=served.old.key_id).click("Drop the next key")
    assert "waits to be promoted" not in browser.text
    browser.click(f"Change {served.old.key_id} debug").fill(value="on").click("Change the release's policy")
    policy = json.loads(served.admin("release", "policy", served.old.key_id, "--json").out)["policy"]
    assert next(each for each in policy if each["key"] == "debug") | {"meaning": ""} == {"key": "debug", "value": "on", "from": "release", "meaning": ""}


def test_a_refusal_is_explained(browser, served):
    """The event id of a response leads to the mistake of the signer, although the app tells callers nothing."""
    answer = served.send(SecretAsText(served.key.key_id, served.key.secret, served.key.authority).request(target="/orders"))
    problem = json.loads(answer.body)
    assert problem["code"] == "bad-signature" and "explain" not in problem
    browser.sign_in()
    until(lambda: "bad-signature" in browser.open("/console/refusals").text, "the refusal is listed")
    browser.search(problem["instance"])
    assert browser.heading == f"Event {problem['instance'][:8]}"
    assert served.key.key_id in browser.text and "secret-encoding" in browser.text and "Remedy" in browser.text and "/orders" in browser.text
    # What was refused without a signature has no mistake to find; the log's line is there.
    problem = json.loads(served.send(f"GET /x HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n\r\n".encode()).body)
    page = f"/console/events/{problem['instance']}"
    until(lambda: "names no release" in browser.open(page).text, "it is kept")
    assert "unsigned" in browser.text
    # A request that was altered on its way has none either, and the page says so.
    problem = json.loads(served.send(served.key.request(target="/a").replace(b" /a ", b" /b ")).body)
    page = f"/console/events/{problem['instance']}"
    until(lambda: "No usual mistake of a signer explains it" in browser.open(page).text, "it was looked into")


def test_explanations_have_a_budget(served):
    """A flood of wrong signatures is refused, and few of them are looked into."""
    visitor = served.visit()
    for number in range(60):
        served.send(served.key.request(target=f"/flood?b={number}&a=1").replace(b"&a=1", b"&a=2"))
    page = visitor.get("/console/refusals").text
    kept, explained = re.search(r">bad-signature</a></th><td>(\d+)</td><td>(\d+)</td>", page).groups()
    # Sent within ten seconds, 20 are kept; a slow machine needs more than that.
    assert 20 <= int(kept) <= 60 and 1 <= int(explained) <= int(kept)


def test_the_server_is_looked_at(browser, served):
    browser.sign_in().click("Server")
    assert "The server is ready." in browser.text
    browser.click("Run doctor")
    assert "master-key" in browser.text and "no backend is set" in browser.text
    browser.open("/console/server").click("Reload the settings").click("Reload the settings")
    assert "Done." in browser.text
    browser.click("Audit").click("Verify all records")
    assert "All records and all rows are whole." in browser.text
    browser.click("Operators")
    assert "(this session)" in browser.text


def test_webhooks_are_set_up(browser, served):
    browser.sign_in().click("Webhooks").click("Add a webhook").fill(url="http://hooks.example/", events="account.locked").click("Add a webhook")
    assert "expected https://" in browser.text
    browser.fill(url="https://127.0.0.1:1/hook").click("Add a webhook")
    hook = json.loads(served.admin("webhook", "list", "--json").out)["webhooks"][0]
    assert hook["events"] == ["account.locked"] and hook["id"] in browser.text
    browser.click(f"Test {hook['id']}").click("Send a test")
    until(lambda: "not delivered" in served.log_path.read_text(), "the attempt fails")
    browser.click(f"Remove {hook['id']}").fill(confirmation=hook["id"]).click("Remove the webhook")
    assert "No endpoint is told of events." in browser.text


def test_the_record_of_changes_is_read_page_by_page(served):
    for number in range(60):
        served.admin("app", "policy", "demo", "--set", f"session-idle={number + 30}d")
    visitor = served.visit()
    numbers, path = [], "/console/audit"
    while path:
        page = visitor.get(path).text
        numbers += [int(number) for number in re.findall(r'<tr><th scope="row">(\d+)</th>', page)]
        found = re.search(r'rel="next" href="([^"]+)"', page)
        path = found and found[1].replace("&amp;", "&")
    assert numbers == list(range(numbers[0], 0, -1)) and len(numbers) > 60


@needs.programs("strace")
def test_pages_keep_the_deployment_open(tmp_path):
    """SQLite opens the log of each connection anew: no page makes one, and a change of another process is seen all the same."""
    with Deployment(tmp_path) as deployment:
        visitor = deployment.visit("--read-only")

        def is_traced(pid: int, by: int) -> bool:
            return all(f"TracerPid:\t{by}\n" in status.read_text() for status in pathlib.Path(f"/proc/{pid}/task").glob("*/status"))

        def opened(path: str) -> int:
            trace = tmp_path / "trace"
            tracer = processes.start(["strace", "-f", "-q", "-s", "4096", "-e", "trace=openat", "-o", trace, "-p", str(deployment.process.pid)],
                                      stderr=subprocess.DEVNULL)
            until(lambda: is_traced(deployment.process.pid, tracer.pid), "strace attaches to each thread")
            try:
                assert visitor.get(path).status == 200
            finally:
                tracer.terminate()
                tracer.wait(60)
            return trace.read_text().count('countersign.db-wal", ')

        assert visitor.get("/console/apps").status == 200
        deployment.add_app("a0")
        assert {path: opened(path) for path in ("/", "/console/search?q=nothing", "/console/apps")} == {
            "/": 0, "/console/search?q=nothing": 0, "/console/apps": 0}
        assert ">a0<" in visitor.get("/console/apps").text


# MARK: What operators see


def test_the_first_page_follows_the_traffic_and_the_outage(browser, served):
    """Figures of a whole minute arrive without a reload; an outage is shown within ten seconds, and is gone when it is over."""
    browser.sign_in()
    session = served.key.request(target="/")
    served.send(session)
    element = browser.driver.find_element(By.ID, "live-ready")
    assert element.text == "The server is ready."
    drill = processes.start([served.binary, "drill", "store", "--for", "12s", "--yes", "--data", str(served.data), "--admin",
                              f"127.0.0.1:{served.admin_port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    WebDriverWait(browser.driver, 11).until(lambda driver: "not ready" in driver.find_element(By.ID, "live-ready").text)
    assert browser.driver.find_element(By.ID, "live-ready").get_attribute("role") == "alert"
    drill.wait(60)
    WebDriverWait(browser.driver, 20).until(lambda driver: driver.find_element(By.ID, "live-ready").text == "The server is ready.")
    # The minute of the request is over at last.
    WebDriverWait(browser.driver, 75).until(lambda driver: driver.find_element(By.ID, "live-refused").text not in ("–", "0")
                                            or driver.find_element(By.ID, "live-accepted").text not in ("–", "0"))
    assert browser.driver.find_element(By.ID, "live-tail").text.endswith(" ms")
    assert browser.errors() == []


def test_the_labs_verdicts_are_shown(browser, served):
    record = served.data / "lab-record"
    browser.sign_in().click("Lab")
    assert f"countersign lab --record --data {served.data}" in browser.text
    done = run("lab", "--scheme", "md5,countersign", "--attack", "replay-at-once,tamper-body", "--record", "--data", served.data, timeout=180)
    assert done.returncode == 0, done.err
    assert "Countersign’s own protocol held against 2 attacks." in browser.open("/console/lab").text and "2 held, 2 fell" in browser.text

    def rows(number: int) -> list[list[str]]:
        table = browser.driver.find_elements(By.TAG_NAME, "table")[number]
        return [[cell.get_attribute("textContent") for cell in row.find_elements(By.CSS_SELECTOR, "th, td")]
                for row in table.find_elements(By.TAG_NAME, "tr")]

    assert rows(0) == [["Scheme", "tamper", "replay"], ["md5", "F", "F"], ["countersign", "H", "H"]]
    assert rows(1) == [["Scheme", "tamper-body", "replay-at-once"], ["md5", "F", "F"], ["countersign", "H", "H"]]
    known = json.loads(record.read_text())
    known["rows"][1]["cells"]["tamper-body"], known["version"] = "F", "0.0.1"
    known["rows"][1]["summary"] = MARKUP
    known["not_run"] = [{"scheme": "nginx", "reason": MARKUP}]
    record.write_text(json.dumps(known))
    browser.open("/console/lab")
    assert "Attacks on Countersign’s own protocol succeeded:" in browser.text and "countersign: tamper-body" in browser.text
    assert "0.0.1 this server is" in browser.text and MARKUP in browser.text
    assert browser.driver.execute_script("return document.querySelectorAll('img').length") == 0
    assert Axe().run(browser.driver)["violations"] == []
    # What is no record is no page.
    record.write_text(json.dumps(known | {"rows": [known["rows"][0] | {"scheme": MARKUP}]}))
    assert "damaged" in browser.open("/console/lab").text and MARKUP not in browser.text
    record.unlink()
    assert served.visit("--scope", "apps:read").get("/console/lab").status == 403


def test_the_last_backup_is_shown_and_missed(served, tmp_path):
    visitor = served.visit("--scope", "server:read")

    def shown() -> str:
        return re.search(r"<dt>Last backup</dt><dd>(.*?)</dd>", visitor.get("/").text, re.S)[1]

    assert ">none was made</span>" in shown() and "warning" in shown()
    served.admin("backup", tmp_path / "b")
    record = served.data / "last-backup"
    made = json.loads(record.read_text())["made"]
    assert re.search(r'good">0 h ago</span> <time datetime="\d{4}-', shown())
    for days, mark in ((6, 'good">6 days ago'), (8, 'warning">overdue: 8 days ago')):
        record.write_text(json.dumps(json.loads(record.read_text()) | {"made": made - days * 86_400}))
        assert mark in shown(), shown()
    # A damaged record takes nothing else away.
    record.write_text("[]")
    assert "damaged" in shown() and "Serving since" in visitor.get("/").text
    record.unlink()
    assert "Last backup" not in served.visit("--scope", "apps:read").get("/").text


PAGES = ["/", "/console/apps", "/console/apps/demo", "/console/apps/demo/policy", "/console/apps/demo/accounts", "/console/apps/demo/accounts/anna",
         "/console/refusals", "/console/audit", "/console/audit/verification", "/console/webhooks", "/console/server", "/console/lab", "/console/operators", "/console/search?q=nothing",
         "/console/do/lockAccount?app=demo&account=anna", "/console/do/setRoute?app=demo", "/console/do/addRelease?app=demo", "/console/nothing"]


@pytest.mark.parametrize("width, scheme", [(1280, "light"), (1280, "dark"), (360, "light")])
def test_pages_are_accessible_and_fit(browser, served, width, scheme):
    """By axe-core's rules; and nothing but a table's own region scrolls sideways."""
    driver = browser.sign_in().driver
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False})
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    for page in [*PAGES, f"/console/releases/{served.key.key_id}", f"/console/do/retireRelease?key={served.key.key_id}"]:
        browser.open(page)
        findings = Axe().run(driver)["violations"]
        assert findings == [], (page, [(each["id"], [node["html"] for node in each["nodes"]]) for each in findings])
        assert driver.execute_script("return document.documentElement.scrollWidth") <= width, page
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_everything_works_without_a_script_and_by_keyboard(browser, served):
    browser.sign_in()
    browser.driver.find_element(By.TAG_NAME, "body").send_keys("/")
    assert browser.driver.switch_to.active_element.get_attribute("id") == "search"
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.open("/console/apps/demo/accounts/anna").click("Lock anna").fill(confirmation="anna").click("Lock the account")
        assert "locked" in browser.text
        browser.click("Unlock anna").click("Unlock the account")
        assert "active" in browser.text
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
