"""What refused callers are told, in their app's words and their language: by app and by release, at once."""

import json
import time
import urllib.parse

import pytest

from gateway import Gateway, run
from l1_client import signed

OLD, NEW, SECRET = "a-0001", "a-0002", "hUe7cXs2Rb9yKfJ4"
LINK = "https://example.com/new"


class Place:
    def __init__(self, running: Gateway):
        self.running = running
        running.add_app("shop", schemes="form-md5,message-signatures", legacy_login="on",
                        legacy_session="authority", legacy_host="127.0.0.1")
        for key, version in ((OLD, "1.0"), (NEW, "2.0")):
            running.add_release("shop", "ios", version, "--scheme", "form-md5", "--key-id", key, "--secret", SECRET)
        running.admin("release", "retire", OLD, "--at", "now", "--update-url", LINK)
        self.key = running.add_release("shop", version="3.0")

    def set(self, language: str, texts: dict | bytes, *more: str):
        """Of the command: whether it did it."""
        stdin = texts if isinstance(texts, bytes) else json.dumps(texts, ensure_ascii=False).encode()
        return run("app", "messages", "shop", "--language", language, "--file", "-", *more, "--data",
                   self.running.data, stdin=stdin)

    def remove(self, language: str, *more: str):
        return run("app", "messages", "shop", "--language", language, "--remove", *more, "--data", self.running.data)

    def listed(self) -> list[dict]:
        return json.loads(self.running.admin("app", "messages", "shop", "--list", "--json").out)["messages"]

    def post(self, path: str, form: dict, language: str | None = None):
        body = urllib.parse.urlencode(form)
        lines = [f"POST {path} HTTP/1.1", f"Host: 127.0.0.1:{self.running.port}",
                 f"Content-Length: {len(body)}", "Content-Type: application/x-www-form-urlencoded"]
        if language is not None:
            lines.append(f"Accept-Language: {language}")
        return self.running.send("\r\n".join([*lines, "", body]).encode())

    def err(self, key: str = NEW, language: str | None = None, **business: str) -> dict:
        """For a signed call under an unknown token, or of a retired version."""
        version = "1.0" if key == OLD else "2.0"
        answer = self.post("/api", signed(business or {"token": "gone"}, key, SECRET, "ios", version), language)
        assert answer.status == 200
        return json.loads(answer.body)["err"] | {"language": answer.get("content-language")}

    def told(self, language: str | None = None, key: str = NEW) -> str:
        return self.err(key, language)["msg"]


@pytest.fixture
def place(tmp_path):
    with Gateway(tmp_path) as running:
        yield Place(running)


def test_by_language(place):
    before = place.told("zh")
    assert before == "The session has ended"
    assert place.set("zh", {"-100": "请重新登录", "-99": "请更新"}).returncode == 0
    assert place.set("de", {"session-ended": "Bitte melden Sie sich an"}).returncode == 0
    assert place.set("pt-BR", {"-100": "Entre de novo \"\\"}).returncode == 0
    for language, text in [
        ("zh-Hans-CN", "请重新登录"), ("de;q=0.5,zh;q=0.9", "请重新登录"), ("pt-br", "Entre de novo \"\\"), ("fr", before), (None, before),
        (";;;,,,-,zh-", before), ("x" * 600 + ",zh", before),
    ]:
        assert place.told(language) == text, language
    assert place.err(language="zh-CN")["language"] == "zh"
    assert place.err(language="fr")["language"] is None
    assert place.set("default", {"-100": "Please sign in"}).returncode == 0
    assert place.told("fr") == place.told() == "Please sign in" and place.told("zh") == "请重新登录"


def test_a_code_s_name_comes_before_its_number(place):
    place.set("en", {"-3": "by number", "bad-signature": "by name"})
    wrong = signed({}, NEW, SECRET + "x", "ios", "2.0")
    assert json.loads(place.post("/api", wrong, "en").body)["err"]["msg"] == "by name"
    place.set("en", {"-3": "by number"})
    assert json.loads(place.post("/api", wrong, "en").body)["err"]["msg"] == "by number"


def test_by_release(place):
    place.set("zh", {"-100": "app", "-99": "app"})
    assert place.set("zh", {"-99": "old"}, "--release", OLD).returncode == 0
    assert place.set("en", {"-100": "new"}, "--release", NEW).returncode == 0
    assert place.err(OLD, "zh")["msg"] == "old" and place.err(OLD, "zh")["eventId"] == LINK
    assert place.told("zh") == "app" and place.told("en") == "new"
    rows = place.listed()
    assert [(row["release"], row["language"], row["texts"]) for row in rows] == [
        (None, "zh", {"-100": "app", "-99": "app"}), (OLD, "zh", {"-99": "old"}),
        (NEW, "en", {"-100": "new"})]
    assert place.remove("zh", "--release", OLD).returncode == 0
    assert place.err(OLD, "zh")["msg"] == "app"
    # The texts are no policy of the release.
    releases = place.running.admin("release", "list", "shop").out
    assert "messages" not in releases


def test_removed_at_once(place):
    place.set("zh", {"-100": "weg"})
    assert place.told("zh") == "weg"
    assert place.remove("zh").returncode == 0
    assert place.told("zh") == "The session has ended" and place.listed() == []
    assert place.remove("zh").returncode == 1


def test_unsigned_calls_and_problem_documents(place):
    place.set("zh", {"-1": "坏", "unsigned": "没有签名", "bad-signature": "签名错误"})
    answer = place.post("/login/login.php", {"username": "a"}, "zh")
    assert json.loads(answer.body)["err"]["msg"] == "坏" and answer.get("content-language") == "zh"
    request = place.key.request("GET", "/x")
    broken = request.replace(b"GET /x ", b"GET /y ").replace(b"\r\n\r\n", b"\r\nAccept-Language: zh\r\n\r\n")
    answer = place.running.send(broken)
    assert answer.status == 401 and json.loads(answer.body)["detail"] == "签名错误"
    assert json.loads(answer.body)["code"] == "bad-signature" and answer.get("content-language") == "zh"


def test_developers_see_the_reason_and_dates_as_people_write_them(place):
    place.set("zh", {"-99": "更新"})
    place.running.admin("app", "policy", "shop", "--set", "debug=on")
    message = place.told("zh", OLD)
    assert "更新" not in message
    at = message.split("was retired at ")[1][:20]
    assert abs(time.time() - time.mktime(time.strptime(at, "%Y-%m-%dT%H:%M:%SZ")) + time.timezone) < 3600


def test_files_that_are_not_taken(place):
    for texts in ({"-100": "line\nbreak"}, {"-100": "x" * 2049}, {"-100": 7}, {"-102": "x"}, {}, b"no JSON", b'{"-100":"a","-100":"b"}'):
        done = place.set("zh", texts)
        assert done.returncode == 2 and done.err.startswith("countersign: "), (texts, done.err)
    assert place.listed() == []


def test_languages_are_counted(place):
    names = [f"aa-{n:02d}" for n in range(32)]
    assert [place.set(name, {"-100": "x"}).returncode for name in names] == [0] * 32
    assert place.set("zz", {"-100": "x"}).returncode == 1
    assert place.set("aa-00", {"-100": "y"}).returncode == 0, "one that is there may change"
    assert place.set("zz", {"-100": "x"}, "--release", NEW).returncode == 0


def test_words_that_are_not_taken(place):
    for arguments in (("--language", "z_h", "--remove"), ("--remove",), ("--language", "zh"),
                      ("--language", "zh", "--remove", "--file", "-")):
        done = run("app", "messages", "shop", *arguments, "--data", place.running.data, stdin="{}")
        assert done.returncode == 2, (arguments, done.err)


def test_others_releases(place):
    place.running.add_app("other")
    done = run("app", "messages", "other", "--language", "zh", "--file", "-", "--release", NEW, "--data",
               place.running.data,
               stdin='{"-100":"x"}')
    assert done.returncode == 1
    assert place.set("zh", {"-100": "x"}, "--release", "r_none").returncode == 1


def test_in_the_audit_log_and_not_in_the_policy(place):
    place.set("zh", {"-100": "x"})
    assert "app.messages" in place.running.admin("audit", "list", "--last", "3", "--json").out
    assert "messages/" not in place.running.admin("app", "policy", "shop").out
    assert place.running.admin("audit", "verify").returncode == 0
