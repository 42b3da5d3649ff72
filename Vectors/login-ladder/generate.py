#!/usr/bin/env python3
"""Makes cases.json from figures.json: each rung's value computed again with hashlib and hmac, with every intermediate.

The figures were given; where one differs from what is computed here, this stops. Its output is the same each time.
"""
import base64
import datetime
import hashlib
import hmac
import json
import pathlib

HERE = pathlib.Path(__file__).parent


def md5(text):
    return hashlib.md5(text).hexdigest()


def hmac_md5(key, message):
    return hmac.new(key, message, hashlib.md5).hexdigest()


def unix_time(minute, offset):
    """The first second of a minute on a clock `offset` seconds east of UTC."""
    time = datetime.datetime.strptime(minute, "%Y-%m-%d%H:%M").replace(tzinfo=datetime.timezone.utc)
    return int(time.timestamp()) - offset


def case(index, figure):
    password, salt, key = (figure[name].encode() for name in ("password", "salt", "key"))
    minute = figure["minute"]
    offset = (0, 8 * 3600, -(3 * 3600 + 1800), 14 * 3600)[index % 4]
    inner = hmac_md5(key, password)
    minute_key = md5(key)
    kept = hmac_md5(minute_key.encode(), password)
    message = kept + minute
    sent = {
        "plain-get": figure["password"],
        "plain-post": figure["password"],
        "base64": base64.b64encode(password).decode(),
        "md5": md5(password),
        "md5-salt": md5(password + salt),
        "hmac-md5": md5(inner.encode()),
        "hmac-md5-time": hmac_md5(minute_key.encode(), message.encode()),
    }
    if sent != figure["sent"] or kept != figure["kept"]:
        raise SystemExit(f"figure {index} differs from what hashlib computes")
    return {
        "name": f"ladder {index}",
        "password": figure["password"],
        "salt": figure["salt"],
        "key": figure["key"],
        "timezone_offset": offset,
        "time": unix_time(minute, offset),
        "minute": minute,
        "hmac_md5_inner": inner,
        "minute_key": minute_key,
        "kept": kept,
        "minute_message": message,
        "sent": sent,
    }


figures = json.loads((HERE / "figures.json").read_text(encoding="utf-8"))["cases"]
cases = [case(index, figure) for index, figure in enumerate(figures)]
text = json.dumps({"cases": cases}, ensure_ascii=False, indent=1) + "\n"
(HERE / "cases.json").write_text(text, encoding="utf-8")
