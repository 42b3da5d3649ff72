"""Backends that say which of some routes a request means to them: PHP, Node, Python and nginx, each with its usual way of
reading a path. A route is a prefix with the methods that it is for, none for all; GET includes HEAD. The field `X-Route` has
the number of the route that the backend finds, or `-`: the longest, and of one prefix first those that name methods."""

import http.client
import json
import pathlib
import subprocess
import sys

import processes
from ports import listens, reserve_port
from waiting import until

PHP = r"""<?php
$routes = json_decode(getenv('ROUTES'));
$path = parse_url('http://h' . $_SERVER['REQUEST_URI'], PHP_URL_PATH);
if ($path === false || $path === null) { header('X-Route: -'); return true; }
$path = rawurldecode($path);
// A script in the path is run, and told the rest.
if (preg_match('#\\.php(/.*)$#i', $path, $rest)) { $path = $rest[1]; }
$found = '-'; $length = -1;
$names = $_SERVER['REQUEST_METHOD'] === 'HEAD' ? ['HEAD', 'GET'] : [$_SERVER['REQUEST_METHOD']];
foreach ($routes as $number => [$route, $methods]) {
    $is = $route === '/' || $path === $route || str_starts_with($path, $route . '/');
    if ($methods && !array_intersect($names, $methods)) { continue; }
    $rank = 2 * strlen($route) + ($methods ? 1 : 0);
    if ($is && $rank > $length) { $found = $number; $length = $rank; }
}
header('Content-Type: text/plain');
header("X-Route: $found");
return true;
"""

# Routers of Node compare without case unless they are told otherwise.
NODE = r"""
const routes = JSON.parse(process.env.ROUTES);
require('http').createServer((request, response) => {
  let found = '-', length = -1;
  try {
    const path = decodeURIComponent(new URL(request.url, 'http://h').pathname).toLowerCase();
    const names = request.method === 'HEAD' ? ['HEAD', 'GET'] : [request.method];
    routes.forEach(([route, methods], number) => {
      const name = route.toLowerCase();
      const is = name === '/' || path === name || path.startsWith(name + '/');
      if (methods.length && !methods.some(name => names.includes(name))) return;
      const rank = 2 * route.length + (methods.length ? 1 : 0);
      if (is && rank > length) { found = String(number); length = rank; }
    });
  } catch (error) {}
  response.setHeader('X-Route', found);
  response.end();
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
        names = {"HEAD", "GET"} if self.command == "HEAD" else {self.command}
        for number, (route, methods) in enumerate(ROUTES):
            if methods and not names & {*methods}:
                continue
            pattern = "^/" if route == "/" else "^" + re.escape(route) + r"(?:\.[a-z]+)?(?:/|$)"
            rank = 2 * len(route) + bool(methods)
            if re.match(pattern, path, re.IGNORECASE) and rank > length:
                found, length = str(number), rank
        self.send_response(200)
        self.send_header("X-Route", found)
        self.send_header("Content-Length", "0")
        self.end_headers()
    do_HEAD = do_POST = do_DELETE = do_GET
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
"""


class Backends:
    """All four, for as long as they are needed. `read(requests)` says what each of them takes a method and target for: the
    number of a route, or None where it refuses it or finds none."""

    def __init__(self, folder: pathlib.Path, routes: list[tuple[str, tuple[str, ...]]]):
        self.routes, self.running, self.connections = routes, [], {}
        folder.mkdir()
        for name, start in (("php", self.php), ("node", self.node), ("python", self.python), ("nginx", self.nginx)):
            port = reserve_port()
            self.running.append(start(folder, port))
            self.connections[name] = port

    def environment(self, port: int) -> dict[str, str]:
        return {"PATH": "/usr/bin:/usr/sbin:/bin", "ROUTES": json.dumps(self.routes), "PORT": str(port)}

    def start(self, *command: object, port: int) -> subprocess.Popen:
        process = processes.start([*map(str, command)], env=self.environment(port), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        until(lambda: listens(port, process), f"{command[0]} does not listen")
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", "/")
        connection.getresponse().read()
        return process

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
        """Prefixes as teams write them, and without case. A location is chosen by its path alone, and refuses the methods
        that none of its routes is for."""
        places = ""
        for route in sorted({route for route, _ in self.routes}, key=lambda route: -len(route)):
            numbers = sorted(((methods, number) for number, (name, methods) in enumerate(self.routes) if name == route))
            choices = "".join(f'if ($request_method ~ "^({"|".join(self.accepted(methods))})$") {{ set $route "{number}"; }}\n'
                              for methods, number in numbers)
            place = "/" if route == "/" else f'~* "^{route}(?:/|$)"'
            places += (f'location {place} {{ set $route "";\n{choices}if ($route = "") {{ return 405; }}\n'
                       f'add_header X-Route $route; return 200 ""; }}\n')
        (folder / "nginx.conf").write_text(
            f"daemon off; pid {folder}/pid; error_log /dev/null; worker_processes 1; events {{}}\n"
            f"http {{ access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;\n"
            f"uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s; keepalive_requests 1000000;\n"
            f"server {{ listen 127.0.0.1:{port}; default_type text/plain; {places} }} }}\n")
        return self.start("nginx", "-p", folder, "-c", folder / "nginx.conf", port=port)

    @staticmethod
    def accepted(methods: tuple[str, ...]) -> list[str]:
        """As a regular expression's alternatives."""
        return [*methods, *(["HEAD"] if "GET" in methods else [])] or ["[A-Z]+"]

    def read(self, requests: list[tuple[str, str]]) -> dict[str, list[int | None]]:
        return {name: self.ask(port, requests) for name, port in self.connections.items()}

    def ask(self, port: int, requests: list[tuple[str, str]]) -> list[int | None]:
        found = []
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        # As it stands: http.client refuses what it would not write itself.
        connection._validate_path = lambda _: None  # noqa: SLF001
        for method, target in requests:
            connection.putrequest(method, target)
            if method in ("POST", "DELETE"):
                connection.putheader("Content-Length", "0")
            connection.endheaders()
            answer = connection.getresponse()
            answer.read()
            route = answer.getheader("X-Route", "-")
            found.append(int(route) if answer.status == 200 and route.isdigit() else None)
        connection.close()
        return found

    def __enter__(self) -> "Backends":
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.running:
            process.terminate()
            process.wait(60)
