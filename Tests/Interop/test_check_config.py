"""`serve --check-config` reports every problem of the settings at once, with file and line, and changes nothing."""

import json
import os
import pathlib
import select
import socket
import subprocess

import pytest

from gateway import BINARY, run
from needs import programs


def pair(folder: pathlib.Path, name: str) -> tuple[pathlib.Path, pathlib.Path]:
    """A self-signed certificate and its key."""
    certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                    "-subj", f"/CN={name}", "-keyout", key, "-out", certificate], check=True, capture_output=True)
    key.chmod(0o600)
    return certificate, key


def checked(folder: pathlib.Path, *options: object, environment: dict[str, str] | None = None) -> tuple[int, dict]:
    done = run("serve", "--check-config", "--json", "--data", folder / "data", *options, environment=environment)
    return done.returncode, json.loads(done.out)


def listed(folder: pathlib.Path) -> dict[str, tuple[int, float]]:
    return {str(path): (path.stat().st_mode, path.stat().st_mtime) for path in [folder, *folder.rglob("*")]}


def test_valid_settings_are_valid_and_nothing_is_made(tmp_path):
    settings = tmp_path / "settings.json"
    settings.write_text('{"log": "%s", "upstream": "http://127.0.0.1:9"}' % (tmp_path / "events.jsonl"))
    before = listed(tmp_path)
    status, report = checked(tmp_path, "--config", settings)
    assert (status, report) == (0, {"valid": True, "problems": []})
    assert listed(tmp_path) == before and not (tmp_path / "data").exists()
    done = run("serve", "--check-config", "--data", tmp_path / "data", "--config", settings)
    assert done.returncode == 0 and done.out == "the settings are valid\n"


def test_every_problem_is_reported_at_once_with_its_line(tmp_path):
    settings = tmp_path / "settings.json"
    settings.write_text("""{
  // The backend.
  "upstream": "ftp://user:hunter2@backend",
  "limit_head": 12,
  "nonsense": 1,
  "listen": {"port": 1},
  "upstream_ca": "%s"
}
""" % (tmp_path / "missing.pem"))
    status, report = checked(tmp_path, "--config", settings, "--tls", f"{tmp_path}/c.pem,{tmp_path}/k.pem", "--decide", "nginx",
                             environment={"COUNTERSIGN_WORKERS": "0"})
    assert status == 2 and report["valid"] is False
    found = {(problem["file"], problem["line"], problem["setting"]) for problem in report["problems"]}
    path = str(settings)
    assert {(path, 3, "upstream"), (path, 4, "limit-head"), (path, 5, None), (path, 6, "listen"), (path, 7, "upstream-ca"),
            (None, None, "workers"), (None, None, "tls"), (None, None, "decide")} <= found, report
    assert all(problem["severity"] == "error" for problem in report["problems"])
    limit = next(problem for problem in report["problems"] if problem["setting"] == "limit-head")
    assert limit["found"] == "12" and limit["expected"] == "a whole number from 1024 to 60000"
    # Both files of the pair are named.
    named = [problem["message"] for problem in report["problems"] if problem["setting"] == "tls"]
    assert len(named) == 2 and all("No such file" in message for message in named), named
    assert "hunter2" not in json.dumps(report)
    text = run("serve", "--check-config", "--data", tmp_path / "data", "--config", settings)
    assert text.returncode == 2
    assert f"{settings}:4: limit_head: `12`: expected a whole number from 1024 to 60000\n" in text.out
    assert text.out.endswith("the settings are not valid\n") and "hunter2" not in text.out


def test_a_file_that_is_no_settings_file(tmp_path):
    content, line = '{"workers": 1,\n\n"workers": 2}', 3
    settings = tmp_path / "settings.json"
    settings.write_text(content)
    status, report = checked(tmp_path, "--config", settings, "--workers", "0")
    assert status == 2
    assert [(problem["file"], problem["line"]) for problem in report["problems"]] == [(str(settings), line), (None, None)]


def test_a_missing_file_of_settings(tmp_path):
    status, report = checked(tmp_path, "--config", tmp_path / "missing.json", "--workers", "0")
    assert status == 2
    assert [problem["setting"] for problem in report["problems"]] == [None, "workers"]
    assert "missing.json: cannot open: No such file" in report["problems"][0]["message"]


def test_a_certificate_and_the_key_of_another(tmp_path):
    (certificate, key), (_, other) = pair(tmp_path, "one"), pair(tmp_path, "two")
    assert checked(tmp_path, "--tls", f"{certificate},{key}")[0] == 0
    status, report = checked(tmp_path, "--tls", f"{certificate},{other}")
    assert status == 2 and f"{other}: is not the key of the certificate in {certificate}" in report["problems"][0]["message"]
    status, report = checked(tmp_path, "--tls", f"{key},{key}")
    assert status == 2 and "not a PEM certificate chain" in report["problems"][0]["message"]
    status, report = checked(tmp_path, "--upstream", "https://localhost:1", "--upstream-certificate", f"{certificate},{other}")
    assert status == 2 and report["problems"][0]["setting"] == "upstream-certificate"


def test_modes_that_let_others_read(tmp_path):
    """A key of TLS is a warning, as `serve` uses it; a secret of the data folder is an error, as `serve` does not."""
    certificate, key = pair(tmp_path, "one")
    key.chmod(0o644)
    status, report = checked(tmp_path, "--tls", f"{certificate},{key}")
    assert status == 0 and report["valid"] is True
    assert [(problem["severity"], problem["expected"]) for problem in report["problems"]] == [("warning", "mode 0600")]
    data = tmp_path / "data"
    data.mkdir(mode=0o755)
    (data / "master.key").write_text("q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA")
    (data / "master.key").chmod(0o640)
    before = listed(tmp_path)
    status, report = checked(tmp_path)
    assert status == 2 and listed(tmp_path) == before
    assert sorted((problem["severity"], problem["message"].split(": ")[-1]) for problem in report["problems"]) == [
        ("error", "mode 0640 lets others read this secret; expected 0600 (chmod 600)"), ("warning", "mode 0755; serve sets 0700")]


def test_places_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    status, report = checked(tmp_path, "--log", tmp_path / "none/events.jsonl", "--store", f"sqlite:{tmp_path}/none/store.db")
    assert status == 2
    assert sorted(problem["setting"] for problem in report["problems"]) == ["log", "store"]
    done = run("serve", "--check-config", "--json", "--data", tmp_path / "file")
    assert done.returncode == 2 and "not a folder" in json.loads(done.out)["problems"][0]["message"]


def test_a_data_folder_with_a_slash_at_the_end(tmp_path):
    """Of one that is not there yet, as `serve` takes it."""
    for path, status in [(f"{tmp_path}/new/", 0), (f"{tmp_path}/new//", 0), (f"{tmp_path}/none/new/", 2)]:
        assert run("serve", "--check-config", "--data", path).returncode == status, path


@programs("runuser")
def test_a_log_that_may_be_written_and_not_read(tmp_path):
    log = tmp_path / "log"
    log.write_text("")
    log.chmod(0o222)
    for folder in (tmp_path, *tmp_path.parents):
        if folder != pathlib.Path("/tmp") and str(folder).startswith("/tmp"):
            folder.chmod(0o755)
    tmp_path.chmod(0o777)
    command = ("serve", "--check-config", "--json", "--data", tmp_path / "data", "--log", log)
    done = run(*command, prefix=("runuser", "-u", "nobody", "--"))
    assert (done.returncode, done.out) == (0, '{\n  "valid": true,\n  "problems": []\n}\n'), done.out
    log.chmod(0o444)
    assert run(*command, prefix=("runuser", "-u", "nobody", "--")).returncode == 2


def test_a_log_that_is_a_named_pipe(tmp_path):
    """It is not opened, as its reader would take that for the log's end; so whether there is a reader is not known."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    status, report = checked(tmp_path, "--log", pipe)
    assert status == 0 and [problem["severity"] for problem in report["problems"]] == ["warning"]
    assert report["problems"][0]["message"] == f"--log: {pipe}: a named pipe; serve does not start while no program reads from it"
    # Without an event, and not the end that follows a writer.
    poll = select.poll()
    poll.register(reader, select.POLLIN)
    assert poll.poll(0) == []
    os.close(reader)
    done = run("serve", "--data", tmp_path / "data", "--log", pipe)
    assert done.returncode == 1 and "pipe: cannot open the log" in done.err


def test_no_port_is_opened(tmp_path):
    """An address that is in use is no problem of the settings, and no backend, store or replay guard is asked."""
    traced = tmp_path / "trace"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = subprocess.run(["strace", "-f", "-e", "trace=bind,listen,connect", "-o", traced, BINARY, "serve",
                               "--check-config", "--data", tmp_path / "data", "--listen", f"127.0.0.1:{taken.getsockname()[1]}",
                               "--upstream", f"http://127.0.0.1:{taken.getsockname()[1]}", "--store", "postgres://127.0.0.1/d",
                               "--replay", "redis://127.0.0.1"], capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        taken.setblocking(False)
        with pytest.raises(BlockingIOError):
            taken.accept()
    calls = traced.read_text()
    assert "exited with 0" in calls and not any(f"{call}(" in calls for call in ("bind", "listen", "connect")), calls
    status, report = checked(tmp_path, "--listen", "127.0.0.1:4000", "--admin", "127.0.0.1:4000")
    assert status == 2 and report["problems"][0]["setting"] == "admin"


def test_files_of_the_store_and_the_replay_guard(tmp_path):
    missing = tmp_path / "missing"
    status, report = checked(tmp_path, "--store", f"postgres://h/db?sslrootcert={missing}", "--replay",
                             f"rediss://h?cafile={missing}&passfile={missing}")
    assert status == 2
    assert sorted(problem["setting"] for problem in report["problems"]) == ["replay", "replay", "store"]
