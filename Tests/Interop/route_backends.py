"""Backends that say which of some routes a target means to them: PHP, Node, Python and nginx, each with its usual way of
reading a path. A route is a prefix; the answer's body is the number of the longest that the backend finds, or `-`."""

import contextlib
import http.client
import json
import pathlib
import subprocess
import sys
import time

from ports import free_port

PHP = r"""<?php
$routes = json_decode(getenv('ROUTES'));
$path = parse_url('http://h' . $_SERVER['REQUEST_URI'], PHP_URL_PATH);
if ($path === false || $path === null) { echo '-'; return true; }
$path = rawurldecode($path);
// A script in the path is run, and told the rest.
if (preg_match('#\\.php(/.*)$#i', $path, $rest)) { $path = $rest[1]; }
$found = '-'; $length = -1;
foreach ($routes as $number => $route) {
    $is = $route === '/' || $path === $route || str_starts_with($path, $route . '/');
    if ($is && strlen($route) > $length) { $found = $number; $length = strlen($route); }
}
header('Content-Type: text/plain');
echo $found;
return true;
"""

# Routers of Node compare without case unless they are told otherwise.
NODE = r"""
const routes = JSON.parse(process.env.ROUTES);
require('http').createServer((request, response) => {
  let found = '-', length = -1;
  try {
    const path = decodeURIComponent(new URL(request.url, 'http://h').pathname).toLowerCase();
    routes.forEach((route, number) => {
      const name = route.toLowerCase();
      const is = name === '/' || path === name || path.startsWith(name + '/');
      if (is && route.length > length) { found = String(number); length = route.length; }
    });
  } catch (error) {}
  response.end(found);
}).listen(Number(process.env.PORT), '127.0.0.1');
"""

PYTHON = r"""
import http.server, json, os, posixpath, re, urllib.parse
ROUTES = json.loads(os.environ["ROUTES"])
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    def do_GET(self):
        path = posixpath.normpath(urllib.parse.unquote(urllib.parse.urlsplit(self.path).path))
        path = "/" + path.lstrip("/")
        found, length = "-", -1
        for number, route in enumerate(ROUTES):
            pattern = "^/" if route == "/" else "^" + re.escape(route) + r"(?:\.[a-z]+)?(?:/|$)"
            if re.match(pattern, path, re.IGNORECASE) and len(route) > length:
                found, length = str(number), len(route)
        self.send_response(200)
        self.send_header("Content-Length", str(len(found)))
        self.end_headers()
        self.wfile.write(found.encode())
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
"""


class Backends:
    """All four, for as long as they are needed. `read(target)` says what each of them takes the target for: the number of
    a route, or None where it refuses it or finds none."""

    def __init__(self, folder: pathlib.Path, routes: list[str]):
        self.routes, self.running, self.connections = routes, [], {}
        folder.mkdir()
        for name, start in (("php", self.php), ("node", self.node), ("python", self.python), ("nginx", self.nginx)):
            port = free_port()
            self.running.append(start(folder, port))
            self.connections[name] = port

    def environment(self, port: int) -> dict[str, str]:
        return {"PATH": "/usr/bin:/usr/sbin:/bin", "ROUTES": json.dumps(self.routes), "PORT": str(port)}

    def start(self, *command: object, port: int) -> subprocess.Popen:
        process = subprocess.Popen([*map(str, command)], env=self.environment(port), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while True:
            with contextlib.suppress(OSError):
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
                connection.request("GET", "/")
                connection.getresponse().read()
                return process
            assert process.poll() is None and time.monotonic() < deadline, f"{command[0]} does not listen"
            time.sleep(0.05)

    def php(self, folder: pathlib.Path, port: int) -> subprocess.Popen:
        (folder / "router.php").write_text(PHP)
        return self.start("php", "-S", f"127.0.0.1:{port}", "-t", folder, folder / "router.php", port=port)

    def node(self, folder: pathlib.Path, port: int) -> subprocess.Popen:
        (folder / "server.js").write_text(NODE)
        return self.start("node", folder / "server.js", port=port)

    def python(self, folder: pathlib.Path, port: int) -> subprocess.Popen:
        (folder / "server.py").write_text(PYTHON)
        return self.start(sys.executable, folder / "server.py", port=port)

    def nginx(self, folder: pathlib.Path, port: int) -> subprocess.Popen:
        """Of the same folder as the others; prefixes as teams write them, and without case."""
        places = ""
        for number, route in sorted(enumerate(self.routes), key=lambda pair: -len(pair[1])):
            if route != "/":
                places += f'location ~* "^{route}(?:/|$)" {{ return 200 "{number}"; }}\n'
            else:
                places += f'location / {{ return 200 "{number}"; }}\n'
        (folder / "nginx.conf").write_text(
            f"daemon off; pid {folder}/pid; error_log /dev/null; worker_processes 1; events {{}}\n"
            f"http {{ access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;\n"
            f"uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s; keepalive_requests 1000000;\n"
            f"server {{ listen 127.0.0.1:{port}; default_type text/plain; {places} }} }}\n")
        return self.start("nginx", "-p", folder, "-c", folder / "nginx.conf", port=port)

    def read(self, targets: list[str]) -> dict[str, list[int | None]]:
        return {name: self.ask(port, targets) for name, port in self.connections.items()}

    def ask(self, port: int, targets: list[str]) -> list[int | None]:
        found = []
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        connection.putrequest("GET", "/")
        connection.endheaders()
        connection.getresponse().read()
        for target in targets:
            connection.close() if connection.sock is None else None
            # As it stands: http.client refuses what it would not write itself.
            connection._validate_path = lambda _: None  # noqa: SLF001
            connection.putrequest("GET", target)
            connection.endheaders()
            answer = connection.getresponse()
            body = answer.read()
            found.append(int(body) if answer.status == 200 and body.isdigit() else None)
        connection.close()
        return found

    def __enter__(self) -> "Backends":
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.running:
            process.terminate()
            process.wait(20)
