"""The tables of docs/scale.md, in Markdown, from the figures of cluster.py."""

import pathlib
import re
from collections.abc import Callable
from dataclasses import dataclass

START, END = "<!-- figures of script/bench cluster -->", "<!-- end of the figures -->"
DAY = 86_400
USERS = 1_000_000
GIB = 1 << 30
# Seconds for which a shared replay guard keeps an entry: the widest window of the policies, 60 s, and a minute.
KEPT_SECONDS = 120


@dataclass(frozen=True)
class Work:
    """What a monthly user does on an average day, and which figures say what it costs."""
    name: str
    a_day: float
    text: str


# A peak has so many times the average rate, and a monthly user so many sessions.
PEAK, SESSIONS = 5, 1.5
ALL_WORK = [
    Work("get", 57, "57 signed requests"),
    Work("keyed", 3, "3 requests with an Idempotency-Key"),
    Work("refresh", 4, "4 refreshes"),
    Work("login", 1 / 30, "1 login in 30 days"),
    Work("signup", 1 / 365, "1 sign-up in 365 days"),
]


def table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join([f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}", *(f"| {' | '.join(row)} |" for row in rows)])


def us(value: float | None) -> str:
    return "–" if value is None else f"{value:,.1f} µs" if value < 1000 else f"{value:,.0f} µs"


def rate(value: float) -> str:
    return f"{value:,.0f}"


def costs(row: dict, *groups: str) -> list[str]:
    return [us(row.get(f"{group}_us")) for group in groups]


def requests_table(figures: dict) -> str:
    rows = []
    for site in figures["sites"]:
        for name, text in (("get", "GET"), ("keyed", "keyed POST")):
            row = site[name]
            rows.append([site["name"], text, *costs(row, "gateway", "postgres", "redis"), rate(row["per_second"])])
    head = ["", "request", "gateways", "PostgreSQL", "Redis", "a second, on the machine's cores"]
    return table(head, rows)


def idle_table(figures: dict) -> str:
    names = ("gateway", "postgres", "redis")
    rows = []
    for site in figures["sites"]:
        idle = site["idle_ms"]
        rows.append([site["name"], *(f"{idle[name]:.1f} ms" if name in idle else "–" for name in names)])
    return table(["CPU in a second without requests", "gateways", "PostgreSQL", "Redis"], rows)


def guards_table(figures: dict) -> str:
    rows = [[f"`{row['guard']}`", us(row["gateway_us"]), us(row["server_us"]) if row["guard"] != "file" else "–", rate(row["per_second"])]
            for row in figures["guards"]]
    return table(["`--replay`", "gateway", "the guard's server", "a second"], rows)


def logins_table(figures: dict) -> str:
    rows = []
    for site in figures["sites"]:
        if "login" not in site:
            continue
        for name, text in (("signup", "sign-up"), ("login", "login"), ("refresh", "refresh")):
            row = site[name]
            rows.append([site["name"], text, *costs(row, "gateway", "postgres", "redis"), rate(row["per_second"])])
    return table(["", "", "gateways", "PostgreSQL", "Redis", "a second, on the machine's cores"], rows)


def sessions_table(figures: dict) -> str:
    rows = []
    for row in figures["sessions"]:
        rows.append([
            f"{row['sessions']:,}", *costs(row, "first_gateway", "first_postgres"), us(row["gateway_us"]), us(row["gateway_least_us"]),
            f"{row['ratio']:.2f}", f"{row['ratio_of_leasts']:.2f}", f"{row['start_seconds']:.1f} s", f"{row['check_seconds']:.1f} s",
            f"{row['rss'] / 2**20:,.0f} MiB", f"{row['disk_bytes']:,.0f} B"])
    head = ["sessions", "first request: gateway", "PostgreSQL", "a later one: gateway, median", "least", "ratio of medians", "of leasts",
            "start of a node", "CPU of its check of all rows", "its memory", "database, each"]
    text = table(head, rows)
    memory = figures["sessions"][-1].get("memory_bytes")
    return text + (f"\n\nMemory of a node for each session: **{memory:,.0f} bytes**." if memory else "")


def rates_of(users: float) -> dict[str, float]:
    """How often a second, at the peak, for so many monthly users."""
    return {work.name: work.a_day * users * PEAK / DAY for work in ALL_WORK}


def reference(figures: dict) -> dict:
    """One node over PostgreSQL: the figures that the model uses."""
    return next(site for site in figures["sites"] if site["store"] == "postgres" and site["nodes"] == 1)


def used(figures: dict, group: str) -> float:
    """Seconds of CPU in a second at the peak of a million monthly users."""
    site = reference(figures)
    return sum(times * site[name].get(f"{group}_us", 0) / 1e6 for name, times in rates_of(USERS).items())


def changes(figures: dict) -> float:
    """The share of the time that PostgreSQL's durable changes take at that peak, by the measured rates."""
    site = reference(figures)
    return sum(times / site[name]["per_second"] for name, times in rates_of(USERS).items() if name != "get")


def limits_table(figures: dict) -> str:
    """What is full first."""
    site = reference(figures)
    resources: list[tuple[str, str, float]] = [
        ("durable changes of PostgreSQL, all nodes together",
         f"{rate(site['refresh']['per_second'])} refreshes, {rate(site['login']['per_second'])} logins or "
         f"{rate(site['keyed']['per_second'])} keyed requests", changes(figures)),
        ("Redis, one core: it uses no more", f"{rate(1e6 / site['get']['redis_us'])} requests", used(figures, "redis")),
        ("PostgreSQL, each core", f"{rate(1e6 / site['keyed']['postgres_us'])} keyed requests", used(figures, "postgres")),
        ("a node, each core", f"{rate(1e6 / site['get']['gateway_us'])} requests", used(figures, "gateway")),
    ]
    rows = [[name, text, f"{USERS / share / 1e6:,.1f} million"] for name, text, share in sorted(resources, key=lambda each: -each[2])]
    return table(["resource", "full at, a second", "or at so many monthly users, at their peak"], rows)


def users_table(figures: dict) -> str:
    """What a million monthly users take."""
    site, many = reference(figures), figures["sessions"][-1]
    rows = []
    for work in ALL_WORK:
        times = work.a_day * USERS
        row = site[work.name]
        rows.append([work.text, f"{times / DAY:,.1f}", f"{times * PEAK / DAY:,.1f}",
                     *(f"{times * row.get(f'{group}_us', 0) / 1e6:,.0f} s" for group in ("gateway", "postgres", "redis"))])
    total = [f"**{sum(work.a_day * USERS * site[work.name].get(f'{group}_us', 0) / 1e6 for work in ALL_WORK):,.0f} s**"
             for group in ("gateway", "postgres", "redis")]
    rows.append(["in all", "", "", *total])
    text = table(["each user, a day", "a second, average", "peak", "gateways, a day", "PostgreSQL", "Redis"], rows)
    sessions = SESSIONS * USERS
    peak = rates_of(USERS)
    # A refresh keeps its attempt beside its signature; the others have two requests.
    entries = (peak["get"] + peak["keyed"] + 2 * (peak["refresh"] + peak["login"] + peak["signup"])) * KEPT_SECONDS
    memory = f"{sessions * many['memory_bytes'] / GIB:.2f} GiB" if "memory_bytes" in many else "–"
    rest = [
        ["cores at the peak: gateways, PostgreSQL, Redis",
         ", ".join(f"{used(figures, group):.2f}" for group in ("gateway", "postgres", "redis"))],
        ["memory of each node, for its sessions", memory],
        ["database, with an account for each session, which is more than there are", f"{sessions * many['disk_bytes'] / GIB:.2f} GiB"],
        ["Redis, for the entries of the peak", f"{entries * figures['redis_bytes'] / GIB:.2f} GiB ({figures['redis_bytes']:,.0f} bytes each)"],
    ]
    return text + "\n\n" + table(["besides", ""], rest)


SECTIONS: list[tuple[str, Callable[[dict], str]]] = [
    ("Signed requests", requests_table), ("Without requests", idle_table), ("Replay guards", guards_table),
    ("Sign-ups, logins, refreshes", logins_table), ("Sessions", sessions_table), ("What is full first", limits_table),
    ("A million monthly users", users_table),
]


def tables(figures: dict) -> str:
    parts = [f"### {title}\n\n{make(figures)}" for title, make in SECTIONS]
    return "\n\n".join([f"{figures['machine']}.", *parts])


PLACE = re.compile(f"{re.escape(START)}.*{re.escape(END)}", re.DOTALL)


def page_with_tables(path: pathlib.Path) -> str:
    """The text of a page that has tables; otherwise the program ends."""
    text = path.read_text() if path.is_file() else ""
    if len(PLACE.findall(text)) != 1:
        raise SystemExit(f"{path}: expected a page with `{START}` and `{END}`, once")
    return text


def update(path: pathlib.Path, figures: dict) -> None:
    """Puts the tables in place of those that a page has."""
    text = page_with_tables(path)
    path.write_text(PLACE.sub(lambda _: f"{START}\n{tables(figures)}\n{END}", text))
