"""Where an app's routes differ in what they ask for, a path that some backend could read otherwise reaches
no backend; where they do not differ, paths go on as they are."""

import json

import pytest

from backend import Backend
from gateway import Gateway

AMBIGUOUS = ["/public/../admin", "/public//a", "/public/..;x/admin", "/public/%2e%2e/admin", "/public/..%2fadmin", "/public%2Fa",
             "/publ%69c", "/public/..\\admin", "/public/%5c", "/public/a;b", "/public/%00", "/public/%zz", "/public/%c0%ae%c0%ae/x",
             "/public/%252e%252e/x", "/public/a./b", "/public/a%20", "/public/%FF", "/public/%3b", "/PUBLIC/./a"]
PLAIN = ["/public", "/public/", "/public/a/b.c", "/public/%C3%A9?x=/../y;z", "/public/a%20b"]


@pytest.mark.parametrize("rules", [{"/public": "signed", "/": "session"}, {"/pay": "device"}])
def test_a_path_of_two_readings_is_refused(tmp_path, rules):
    with Backend() as backend, Gateway(tmp_path, "--tls", "off", "--upstream", backend.url) as gateway:
        gateway.add_app("demo")
        key = gateway.add_release()
        with gateway.connect() as connection:
            def code(target: str) -> str:
                connection.send(key.request("GET", target))
                answer = connection.answer()
                return "ok" if answer.status == 200 else json.loads(answer.body)["code"]

            # Nothing differs yet.
            assert {target: code(target) for target in AMBIGUOUS + PLAIN} == {target: "ok" for target in AMBIGUOUS + PLAIN}
            sent = len(backend.seen)
            for prefix, level in rules.items():
                gateway.admin("route", "set", "demo", prefix, "--require", level)
            assert {target: code(target) for target in AMBIGUOUS} == {target: "malformed" for target in AMBIGUOUS}
            assert len(backend.seen) == sent
            assert {target: code(target) for target in PLAIN} == {target: "ok" for target in PLAIN}
