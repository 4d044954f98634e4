"""Web sites as sources: what is found, what is left out, what stays in the index, what can't be abused."""

from __future__ import annotations

import dataclasses
import gzip
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import misbehaving_site as ms
import pytest
from hyce_home import Home, fails, wait_for
from misbehaving_site import Site, page
from pdf_pages import handbook

from hyce.cli import build_parser
from hyce.config import Config, Index, Web
from hyce.errors import SourceError
from hyce.records import Document, Failure, Note, Unchanged
from hyce.sources import web
from hyce.sources.read import Item, key
from hyce.sources.web_address import normal, scope, start
from hyce.sources.web_reach import Reach, kind_of

QUICK = Web(rate=2000, timeout=0.5, retries=0)


class Held:
    """What an index would know of a site."""

    def __init__(self) -> None:
        self.documents: dict[str, Document] = {}

    def paths(self, source: str) -> list[str]:
        return sorted(self.documents)

    def memo(self, source: str, path: str) -> str:
        return self.documents[path].memo if path in self.documents else ""


class Run:
    """Reads a site, again and again, as the index does it: what isn't yielded is gone."""

    def __init__(self, site: Site, folder: str = "/docs/") -> None:
        self.site, self.source = site, site.origin + folder
        self.index = Held()
        self.web = QUICK
        self.most = 1.0
        self.slept: list[float] = []
        self.items: list[Item] = []

    def __call__(self, **settings: Any) -> Run:
        config = Config(web=dataclasses.replace(self.web, **settings), index=Index(max_page_mb=self.most))
        self.items = list(web.read(self.source, config, self.index, self.slept.append))
        old, new = self.index.documents, {}
        for item in self.items:
            if isinstance(item, Document):
                assert item.path not in new, "a page is yielded once"
                new[item.path] = item
            elif isinstance(item, Unchanged):
                new[item.path] = old[item.path]
            elif isinstance(item, Failure) and not item.skipped and item.path in old:
                assert item.alone
                new[item.path] = old[item.path]
        self.index.documents = new
        return self

    @property
    def held(self) -> list[str]:
        """The pages in the index after the run."""
        return sorted(self.index.documents)

    @property
    def new(self) -> list[str]:
        return [item.path for item in self.items if isinstance(item, Document)]

    @property
    def unchanged(self) -> list[str]:
        return [item.path for item in self.items if isinstance(item, Unchanged)]

    @property
    def failed(self) -> dict[str, str]:
        return {
            item.path: item.reason for item in self.items if isinstance(item, Failure) and not item.skipped
        }

    @property
    def skipped(self) -> dict[str, str]:
        return {item.path: item.reason for item in self.items if isinstance(item, Failure) and item.skipped}

    @property
    def notes(self) -> list[str]:
        return [item.reason for item in self.items if isinstance(item, Note)]


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as made:
        yield made


@pytest.fixture
def run(site: Site) -> Run:
    return Run(site)


# -- addresses -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("HTTP://Docs.Example.ORG:80/a/../b/./c%7euser/%e4#part", "http://docs.example.org/b/c~user/%E4"),
        ("https://docs.example.org:443", "https://docs.example.org/"),
        ("https://docs.example.org./a//b/index.html", "https://docs.example.org/a/b/index.html"),
        ("https://docs.example.org/a/%2e%2E/b?x=1", "https://docs.example.org/b?x=1"),
        ("http://[::1]:8080/a b", "http://[::1]:8080/a%20b"),
        ("https://user:secret@docs.example.org/", None),
        ("ftp://docs.example.org/", None),
        ("https:///docs", None),
        ("https://docs.example.org:99999/", None),
        ("https://docs.example.org/" + "a" * 2000, None),
        ("javascript:alert(1)", None),
    ],
)
def test_an_address_has_one_form(text: str, wanted: str | None) -> None:
    found = normal(text)
    assert (str(found) if found else None) == wanted
    if found:
        assert normal(str(found)) == found


def test_a_source_that_is_an_address_is_known_by_its_one_form() -> None:
    assert key("HTTPS://Docs.Example.org:443/hpc/#top") == "https://docs.example.org/hpc/"
    with pytest.raises(SourceError, match="without user name") as error:
        key("https://user:secret@docs.example.org/")
    assert "secret" not in str(error.value)
    with pytest.raises(SourceError, match="https://host/path"):
        key("ftp://docs.example.org/")


@pytest.mark.parametrize(
    ("home", "inside", "outside"),
    [
        ("https://x.org/hpc/", {"/hpc/": "/", "/hpc/a/": "a/", "/hpc/a": "a"}, ["/hpcx", "/", "/hpc/a?q"]),
        ("https://x.org/hpc", {"/hpc": ".", "/hpc/": "/", "/hpc/a": "a"}, ["/hpc2", "/"]),
        ("https://x.org/hpc/index.html", {"/hpc/index.html": "index.html", "/hpc/": "/"}, ["/x"]),
        ("https://x.org/w/index.php?title=A", {"/w/index.php?title=B": "index.php?title=B"}, ["/v?title=A"]),
    ],
)
def test_a_site_is_what_lies_below_the_start_pages_folder(
    home: str, inside: dict[str, str], outside: list[str]
) -> None:
    site = scope(start(home))
    for target, path in inside.items():
        address = start(f"https://x.org{target}")
        assert site.holds(address)
        assert site.path(address) == path
        assert site.address(path) == address
    for target in outside:
        assert not site.holds(start(f"https://x.org{target}"))
    for other in ("http://x.org/hpc/", "https://www.x.org/hpc/", "https://x.org:444/hpc/"):
        assert not site.holds(start(other))
    assert site.address("../secret") is None or site.address("../secret") == start("https://x.org/secret")


# -- machines --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("8.8.8.8", "global"), ("2001:4860:4860::8888", "global"), ("10.1.2.3", "private"),
        ("192.168.1.1", "private"), ("100.64.0.1", "private"), ("fd00::1", "private"),
        ("127.0.0.1", "loopback"), ("127.8.9.1", "loopback"), ("::1", "loopback"),
        ("::ffff:127.0.0.1", "loopback"), ("169.254.169.254", "reserved"), ("fe80::1%eth0", "reserved"),
        ("64:ff9b::a9fe:a9fe", "reserved"), ("2002:0a00:0001::1", "private"), ("0.0.0.0", "reserved"),
        ("224.0.0.1", "reserved"), ("::", "reserved"), ("::127.0.0.1", "reserved"), ("fec0::1", "reserved"),
        ("::ffff:0:10.0.0.1", "reserved"),
    ],
)  # fmt: skip
def test_what_network_an_address_is_in(address: str, kind: str) -> None:
    assert kind_of(address) == kind


def test_a_site_in_the_world_never_leads_into_the_network_around() -> None:
    reach = Reach("docs.example.org")
    reach.check_peer("docs.example.org", "8.8.8.8")
    for address in ("10.0.0.1", "127.0.0.1", "169.254.169.254", "::ffff:10.0.0.1"):
        with pytest.raises(SourceError, match="another network"):
            reach.check_peer("docs.example.org", address)  # the name has another address by now
    reach.check_peer("www.example.org", "9.9.9.9")
    with pytest.raises(SourceError):
        reach.check_peer("www.example.org", "10.0.0.1")


def test_an_internal_site_may_be_read_and_nothing_else_of_its_network() -> None:
    reach = Reach("docs.cluster")
    reach.check_peer("docs.cluster", "10.0.0.1")
    reach.check_peer("docs.cluster", "10.0.0.2")
    assert reach.internal
    for host, address in (("other.cluster", "10.0.0.1"), ("docs.cluster", "127.0.0.1")):
        with pytest.raises(SourceError):
            reach.check_peer(host, address)
    for name in ("docs.cluster", "localhost"):
        with pytest.raises(SourceError):
            Reach(name).check_peer(name, "169.254.169.254")
    with pytest.raises(SourceError):
        Reach("evil.example").check_peer("evil.example", "127.0.0.1")
    Reach("169.254.1.1").check_peer("169.254.1.1", "169.254.1.1")


@pytest.mark.parametrize(
    "host", ["localhost", "intranet", "db.internal", "10.0.0.1", "127.1", "2130706433", "0x7f000001", "[::1]"]
)
def test_by_name_alone_where_a_proxy_connects(host: str) -> None:
    with pytest.raises(SourceError):
        Reach("docs.example.org").check_name(host.strip("[]"))
    Reach("docs.example.org").check_name("www.example.org")


# -- finding pages ---------------------------------------------------------------------------------------


def test_pages_come_from_links(site: Site, run: Run) -> None:
    site.pages = {
        "/docs/": page(
            "Home", "gpu/", "/docs/quota.html#limits", "/elsewhere/", "?page=2", "https://x.example/"
        ),
        "/docs/gpu/": page("GPU", "../", "memory/", "../quota.html"),
        "/docs/gpu/memory/": page("Memory"),
        "/docs/quota.html": page("Quota"),
        "/elsewhere/": page("Elsewhere"),
    }
    run()
    assert run.new == ["/", "gpu/", "quota.html", "gpu/memory/"]
    assert run.failed == {}
    assert list(run.skipped.values()) == ["has a query"]
    first = run.index.documents["gpu/"]
    assert (first.source, first.url) == (run.source, f"{run.source}gpu/")
    assert (first.media_type, first.root) == ("text/html", None)
    assert "/elsewhere/" not in site.asked
    assert all("cookie" not in request.headers for request in site.requests)
    assert site.requests[0].headers["user-agent"].startswith("hyce/")
    assert site.requests[0].headers["accept-encoding"] == "gzip, deflate"


def test_a_start_page_with_a_query_has_pages_with_queries(site: Site) -> None:
    site.pages = {"/w/index.php?title=A": page("A", "?title=B"), "/w/index.php?title=B": page("B")}
    run = Run(site, "/w/index.php?title=A")()
    assert run.new == ["index.php?title=A", "index.php?title=B"]


def test_pages_come_from_sitemaps(site: Site, run: Run) -> None:
    here = site.origin
    names = [f"{here}/docs/{name}" for name in ("a", "b", "c", "d")]
    site.pages = {
        "/robots.txt": ms.sends(f"Sitemap: {here}/maps/all.xml\nSitemap: http://other.example/s.xml"),
        "/maps/all.xml": ms.sends(ms.sitemap(f"{here}/maps/1.xml.gz", f"{here}/maps/all.xml", index=True)),
        "/maps/1.xml.gz": ms.sends(
            gzip.compress(ms.sitemap(names[0], f"{here}/news/1")), content_type="application/gzip"
        ),
        "/docs/sitemap.xml": ms.sends(ms.sitemap(names[1]) + b"<broken"),
        "/sitemap.xml": ms.leads("/maps/moved.xml"),
        "/maps/moved.xml": ms.sends(ms.sitemap(names[2])),
        "/docs/": page("Home", "d"),
        **{f"/docs/{name}": page(name.upper()) for name in "abcd"},
    }
    assert run().held == ["/", "a", "b", "c", "d"]
    assert site.asked.count("/maps/all.xml") == 1
    assert "/news/1" not in site.asked


def test_a_hostile_sitemap(site: Site, run: Run) -> None:
    entities = '<!DOCTYPE u [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;"><!ENTITY f SYSTEM "file:///etc/passwd">]>'
    site.pages = {
        "/docs/": page("Home"),
        "/sitemap.xml": ms.sends(f"{entities}<urlset><url><loc>{run.source}&b;&f;</loc></url></urlset>"),
        "/docs/sitemap.xml": ms.sends(
            gzip.compress(b"<urlset>" + b" " * 50_000_000), content_type="application/gzip"
        ),
    }
    assert run().held == ["/"]
    assert not [path for path in site.asked if "root" in path or "aaa" in path]


def test_sitemaps_take_little_memory_whatever_they_hold(site: Site, run: Run, tmp_path: Path) -> None:
    site.pages = {"/docs/": page("Home")}
    for name, body in (
        ("elements", b"<urlset>" + b"<a/>" * 1_000_000 + b"</urlset>"),
        ("comments", b"<urlset>" + b"<!---->" * 1_000_000 + b"</urlset>"),
        ("maps", b"<sitemapindex>" + b"<sitemap><loc>/m</loc></sitemap>" * 100_000 + b"</sitemapindex>"),
    ):
        file = tmp_path / name
        file.write_bytes(body)
        script = (
            "import resource, sys\n"
            "from hyce.sources import web_sitemap as maps\n"
            "from hyce.sources.web_address import scope, start\n"
            "from hyce.sources.web_fetch import Reply\n"
            "data = open(sys.argv[1], 'rb').read()\n"
            "def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
            "def get(address, limits): return Reply(address, 200, {}, data)\n"
            "before = (start('https://x.org/'), peak())[1]\n"
            "maps.fetch(scope(start('https://x.org/')), (), 10, get, lambda address: True)\n"
            "print(peak() - before)"
        )
        command = [sys.executable, "-c", script, str(file)]
        grown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert int(grown) < 30_000, name  # KB


def test_the_sitemap_will_do_where_the_start_page_fails(site: Site, run: Run) -> None:
    site.pages = {
        "/docs/": ms.fails(500),
        "/docs/a": page("A"),
        "/sitemap.xml": ms.sends(ms.sitemap(f"{run.source}a")),
    }
    run()
    assert (run.new, run.failed) == (["a"], {"/": "the server answers 500"})


def test_nothing_at_all(site: Site, run: Run) -> None:
    with pytest.raises(SourceError, match="404, and no sitemap"):
        run()
    run.source = "http://127.0.0.1:1/docs/"
    with pytest.raises(SourceError, match="the connection failed"):
        run()


def test_robots_txt_is_obeyed(site: Site, run: Run) -> None:
    rules = "User-agent: *\nDisallow: /\n\nUser-agent: hyce\nDisallow: /docs/private/\nCrawl-delay: 3\n"
    site.pages = {
        "/robots.txt": ms.sends(rules, content_type="text/plain"),
        "/docs/": page("Home", "private/keys", "open"),
        "/docs/open": page("Open"),
        "/docs/private/keys": page("Keys"),
    }
    run()
    assert run.held == ["/", "open"]
    assert "/docs/private/keys" not in site.asked
    assert "robots.txt" in "".join(run.skipped.values())
    assert max(run.slept) > 2.5
    site.pages["/robots.txt"] = ms.sends(rules.replace("private/", "open").replace("3", "4000"))
    run()
    assert run.held == ["/", "private/keys"]
    assert "4000 s" in run.notes[0]
    assert max(run.slept) < 100


@pytest.mark.parametrize("how", [ms.fails(503), ms.resets, ms.stays_silent])
def test_without_its_robots_txt_a_site_is_not_read(site: Site, run: Run, how: ms.Step) -> None:
    site.pages = {"/docs/": page("Home"), "/robots.txt": how}
    with pytest.raises(SourceError, match=r"robots\.txt.*try again later"):
        run()
    assert set(site.asked) == {"/robots.txt"}


def test_a_site_that_forbids_its_start_page(site: Site, run: Run) -> None:
    site.pages = {"/docs/": page("Home"), "/robots.txt": ms.sends("User-agent: *\nDisallow: /")}
    with pytest.raises(SourceError, match="asks hyce not to read it"):
        run()
    assert site.asked == ["/robots.txt"]


def test_what_pages_ask_not_to_be_found_or_followed(site: Site, run: Run) -> None:
    robots = '<meta name="robots" content="{}">'
    site.pages = {
        "/docs/": page("Home", "hidden", "dead-end", "header", "other"),
        "/docs/hidden": page("Hidden", "behind", head=robots.format("NOINDEX")),
        "/docs/behind": page("Behind"),
        "/docs/dead-end": page("Dead end", "unseen", head=robots.format("nofollow")),
        "/docs/unseen": page("Unseen"),
        "/docs/header": page("Header", "unseen", x_robots_tag="none"),
        "/docs/other": ms.sends(
            ms.html("Other") + b'<a rel="nofollow" href="unseen">x</a>', x_robots_tag="otherbot: noindex"
        ),
    }
    assert run().held == ["/", "behind", "dead-end", "other"]
    assert run.skipped == {"hidden": "asks not to be found", "header": "asks not to be found"}
    assert "/docs/unseen" not in site.asked


def test_canonical_addresses(site: Site, run: Run) -> None:
    def named(address: str) -> str:
        return f'<link rel="canonical" href="{address}">'

    site.pages = {
        "/docs/": page("Home", "print", "page", "away", "bare"),
        "/docs/print": page("Page", text="The same page as it is printed, on paper.", head=named("page")),
        "/docs/page": page("Page", head=named("/docs/page")),
        "/docs/away": page("Away", head=named("https://other.example/away")),
        "/docs/bare": ms.leads("bare/"),
        "/docs/bare/": page("Bare", head=named("../bare")),
    }
    run()
    assert run.held == ["/", "away", "bare", "page"]
    assert run.index.documents["page"].url == f"{run.source}page"
    assert run.failed == {}
    assert run().held == ["/", "away", "bare", "page"]


def test_a_page_for_printing_takes_no_other_with_it(site: Site, run: Run) -> None:
    head = '<link rel="canonical" href="/docs/page"><meta name="robots" content="noindex">'
    site.pages = {"/docs/": page("Home", "page"), "/docs/page": page("Page")}
    assert run().held == ["/", "page"]
    site.pages |= {"/docs/": page("Home", "print"), "/docs/print": page("Page", head=head)}
    run()
    assert run.held == ["/", "page"]
    assert run.skipped == {"print": "asks not to be found"}


def test_a_page_is_not_left_out_for_one_that_is_left_out(site: Site, run: Run) -> None:
    same = page("Same")
    site.pages = {"/docs/": page("Home", "old", "new"), "/docs/old": same, "/docs/new": same}
    assert run().held == ["/", "old"]
    assert run(exclude=("/docs/old",)).held == ["/", "new"]


def test_the_same_page_at_two_addresses(site: Site, run: Run) -> None:
    menu = ms.html("Home", "index.html", "deep/copy.html", "gpu")
    site.pages = {
        "/docs/": ms.sends(menu),
        "/docs/index.html": ms.sends(menu),
        "/docs/gpu": ms.tagged('"1"', ms.html("GPU", text='Many. <a href="quota">See there.</a>')),
        "/docs/deep/copy.html": page("GPU", "x", text='Many. <a href="../quota">See there.</a>'),
        "/docs/quota": page("Quota"),
    }
    run()
    assert run.held == ["/", "deep/copy.html", "quota"]
    assert run.skipped["index.html"] == "the same as /, which is indexed"
    assert run.skipped["gpu"] == "the same as deep/copy.html, which is indexed"
    assert run().held == ["/", "deep/copy.html", "quota"]
    site.pages["/docs/deep/copy.html"] = ms.missing
    assert run().held == ["/", "gpu", "quota"]  # the other one takes its place in the same run
    assert run().unchanged == ["gpu"]


def test_what_is_left_out_by_name(site: Site, run: Run) -> None:
    links = ("a.png", "b.tar.gz", "_sources/x.rst.txt", "search.html", "news/1", "news/2", "venv/", "x/" * 25)
    site.pages = {"/docs/": page("Home", *links), "/docs/venv/": page("Virtual environments")}
    run(exclude=("/docs/news/*",))
    assert run.held == ["/", "venv/"]
    assert sorted(site.asked[-2:]) == ["/docs/", "/docs/venv/"] or "/docs/venv/" in site.asked
    assert len(site.asked) == 5
    assert run.skipped[f"{run.source}news/1"] == "is among those of web.exclude, and 1 more"
    assert len(run.skipped) == 4


def test_a_chain_of_pages_and_a_page_with_50_000_links(site: Site, run: Run) -> None:
    site.pages = {f"/docs/{n}": page(f"Page {n}", str(n + 1)) for n in range(120)}
    site.pages["/docs/"] = page("Home", "0")
    assert len(run().held) == 121
    run.most = 10.0
    site.pages["/docs/119"] = page("Last", *(f"link{n}" for n in range(50_000)))
    run(pages=130)
    assert len(run.held) == 121
    assert len(site.requests) < 400
    assert len(run.notes) == 1
    assert "49991 links beyond the 130 pages" in run.notes[0]
    assert len(run.items) < 200


# -- redirects -------------------------------------------------------------------------------------------


def test_redirects_within_the_site(site: Site, run: Run) -> None:
    site.pages = {
        "/docs/": page("Home", "old", "loop1", "out", "r0", "self", "new"),
        "/docs/old": ms.leads("new", 301),
        "/docs/new": page("New"),
        "/docs/loop1": ms.leads("/docs/loop2"),
        "/docs/loop2": ms.leads("/docs/loop1"),
        "/docs/self": ms.leads("/docs/self"),
        "/docs/out": ms.leads("https://other.example/"),
        **{f"/docs/r{n}": ms.leads(f"r{n + 1}") for n in range(20)},
    }
    run()
    assert run.held == ["/", "new"]
    assert site.asked.count("/docs/new") == 1
    assert run.skipped["old"] == f"leads to {run.source}new"
    assert run.skipped["out"] == "leads out of the site, to https://other.example/"
    assert "circle" in run.failed["loop1"]
    assert "circle" in run.failed["self"]
    assert "more than 5 times" in " ".join(run.failed.values())
    assert "/docs/r7" not in site.asked


def test_a_start_page_that_has_moved(site: Site) -> None:
    site.pages = {
        "/old/": ms.leads("/step", 301),
        "/step": ms.leads("/en/latest/", 301),
        "/en/latest/": page("Home", "a", "/old/b"),
        "/en/latest/a": page("A"),
        "/old/b": page("B"),
    }
    run = Run(site, "/old/")()
    assert run.held == ["/", "a"]
    assert run.index.documents["a"].source == run.source
    assert run.index.documents["a"].url == f"{site.origin}/en/latest/a"
    site.pages["/docs/"] = ms.leads("/docs/start/")
    site.pages["/docs/start/"] = page("Start", "../other")
    site.pages["/docs/other"] = page("Other")
    assert Run(site)().held == ["other", "start/"]  # within the site: it doesn't become smaller


def test_a_start_page_that_leads_away_for_a_while_loses_no_page(site: Site, run: Run) -> None:
    site.pages = {"/docs/": page("Home", "a"), "/docs/a": page("A")}
    assert run().held == ["/", "a"]
    site.pages |= {"/docs/": ms.leads("/login/"), "/login/": page("Log in")}
    run()
    assert run.held == ["/", "a"]
    assert "since the site has moved" in run.failed["a"]
    site.pages["/docs/"] = ms.leads("/login/", 308)
    assert run().held == ["/"]


def test_a_start_page_leads_into_no_other_network(site: Site, run: Run) -> None:
    with Site({"/": page("Secret"), "/docs/": page("Secret")}) as other:
        targets = (
            f"http://localhost:{other.port}/",
            f"http://127.0.0.1:{other.port}/docs/",
            f"http://127.1:{other.port}/",
            f"http://[::1]:{other.port}/",
            f"http://2130706433:{other.port}/",
            "http://169.254.169.254/latest/meta-data/",
            "http://metadata.google.internal/",
            "https://user:secret@127.0.0.1/",
        )
        for target in targets:
            site.pages["/docs/"] = ms.leads(target)
            with pytest.raises(SourceError):
                run()
        assert other.requests == []
    site.pages["/docs/"] = [ms.leads("/docs/"), ms.leads("/docs/")]
    with pytest.raises(SourceError, match="circle"):
        run()


def test_a_page_leads_into_no_other_network(site: Site, run: Run) -> None:
    with Site({"/docs/": page("Secret")}) as other:
        away = {
            "a": f"{other.origin}/docs/",
            "b": "http://169.254.169.254/",
            "c": f"//localhost:{other.port}/docs/",
        }
        site.pages = {f"/docs/{name}": ms.leads(target) for name, target in away.items()}
        site.pages["/docs/"] = page("Home", *away, f"{other.origin}/docs/")
        assert run().held == ["/"]
        assert other.requests == []


def test_a_proxy_is_asked_and_leads_into_no_other_network(site: Site) -> None:
    with Site() as proxy:
        proxy.pages = {
            "http://docs.example.org/": page("Home", "a", "b"),
            "http://docs.example.org/a": page("A"),
            "http://docs.example.org/b": ms.leads("http://localhost/"),
        }
        run = Run(proxy)
        run.source = "http://docs.example.org/"
        assert run(proxy=proxy.origin).held == ["/", "a"]
        assert proxy.requests[0].headers["host"] == "docs.example.org"
        for target in ("http://localhost/", "http://10.0.0.1/", "http://intranet/"):
            proxy.pages["http://docs.example.org/"] = ms.leads(target)
            with pytest.raises(SourceError, match="another network"):
                run(proxy=proxy.origin)
        assert not [path for path in proxy.asked if "docs.example.org" not in path]
        with pytest.raises(SourceError, match=r"web\.proxy"):
            run(proxy="http://user:secret@127.0.0.1:1")


# -- again -----------------------------------------------------------------------------------------------


def test_pages_that_have_not_changed_are_not_read_again(site: Site, run: Run) -> None:
    site.pages = {
        "/docs/": ms.tagged('"1"', ms.html("Home", "a")),
        "/docs/a": ms.tagged('"2"', ms.html("A", "b")),
        "/docs/b": page("B", last_modified="Fri, 02 Jan 2026 10:00:00 GMT"),
    }
    run()
    assert run.new == ["/", "a", "b"]
    assert [run.index.documents[path].date for path in run.held] == [None, None, "2026-01-02"]
    before = run.index.documents["b"]
    run()
    assert (run.unchanged, run.new) == (["/", "a"], ["b"])
    assert run.index.documents["b"] == before
    conditions = {r.path: r.headers.get("if-modified-since") for r in site.requests}
    assert conditions["/docs/b"] == "Fri, 02 Jan 2026 10:00:00 GMT"
    site.pages["/docs/a"] = ms.tagged('"3"', ms.html("A, new", "b"))
    run()
    assert (run.unchanged, run.new) == (["/"], ["a", "b"])


def test_a_menu_or_a_token_that_changes_makes_no_new_page(site: Site, run: Run) -> None:
    site.pages = {"/docs/": page("Home", "a", text="Text.", head="<script>1</script>"), "/docs/a": page("A")}
    first = run().index.documents["/"].digest
    site.pages["/docs/"] = page("Home", "a", "b", text="Text.", head="<script>2</script>")
    assert run().index.documents["/"].digest == first
    site.pages["/docs/"] = page("Home", "a", text="Other text.")
    assert run().index.documents["/"].digest != first


def test_only_what_the_site_says_is_gone_goes(site: Site, run: Run) -> None:
    names = ("a", "a/b", "c", "d", "e", "f", "g", "h", "i")
    site.pages = {f"/docs/{name}": page(name.upper()) for name in names}
    site.pages["/docs/"] = page("Home", *names)
    run()
    assert run.held == ["/", *names]
    site.pages |= {
        "/docs/": page("Home"),  # nothing leads there any more
        "/docs/a": ms.fails(500),
        "/docs/a/b": ms.fails(404),
        "/docs/c": ms.fails(410),
        "/docs/d": ms.resets,
        "/docs/e": ms.leads("https://login.example/"),
        "/docs/f": ms.leads("g"),
        "/docs/g": ms.fails(403),
        "/docs/h": page("H", head='<meta name="robots" content="noindex">'),
    }
    run()
    assert run.held == ["/", "a", "d", "e", "g", "i"]
    assert set(run.failed) == {"a", "d", "e", "g"}
    site.pages["/docs/i"] = ms.leads("new")
    site.pages["/docs/new"] = ms.fails(500)
    assert "i" in run().held  # where it leads can't be read
    site.pages["/docs/new"] = page("New")
    run()
    assert "i" not in run.held
    assert "new" in run.held


@pytest.mark.parametrize("status", [302, 303, 307])
def test_a_login_in_place_of_all_pages_loses_none(site: Site, run: Run, status: int) -> None:
    before: dict[str, Any] = {f"/docs/{name}": page(name) for name in "abc"}
    before["/docs/"] = page("Home", *"abc")
    site.pages = before
    assert run().held == ["/", "a", "b", "c"]
    login = ms.leads("/docs/login", status)
    site.pages = {"/docs/login": page("Log in"), **dict.fromkeys(before, login)}
    run()
    assert run.held == ["/", "a", "b", "c", "login"]
    assert run.failed["a"] == f"leads to {run.source}login for a while, as 3 others do"
    site.pages = before
    assert run().held == ["/", "a", "b", "c"]
    site.pages = {"/docs/all": page("All"), **dict.fromkeys(before, ms.leads("/docs/all", 301))}
    assert run().held == ["all"]


def test_one_and_the_same_answer_to_everything_loses_no_page_but_one(site: Site, run: Run) -> None:
    before: dict[str, Any] = {f"/docs/{name}": page(name) for name in "abcd"}
    before["/docs/"] = page("Home", *"abcd")
    site.pages = before
    assert run().held == ["/", "a", "b", "c", "d"]
    login: Any = page(
        "Log in to read this documentation: name, password, and the second factor of your centre"
    )
    site.pages = dict.fromkeys(before, login)
    assert run().held == ["/", "a", "b", "c", "d"], "the start page shows the login, the others what they had"
    assert run.failed["a"].startswith("has become the same as /, as 3 others have; ")
    site.pages = before
    assert run().failed == {}
    assert run.held == ["/", "a", "b", "c", "d"]


def test_two_pages_that_become_one_are_one(site: Site, run: Run) -> None:
    site.pages = {"/docs/": page("Home", "a", "b"), "/docs/a": page("A"), "/docs/b": page("B")}
    assert run().held == ["/", "a", "b"]
    site.pages |= dict.fromkeys(
        ("/docs/a", "/docs/b"), page("Both pages tell the same from now on, word by word")
    )
    assert run().held == ["/", "a"]
    assert run.failed == {}


def test_an_empty_answer_loses_no_page(site: Site, run: Run) -> None:
    site.pages = {"/docs/": page("Home", "a"), "/docs/a": page("A")}
    run()
    site.pages["/docs/a"] = ms.sends("")
    assert run().held == ["/", "a"]
    assert run.failed == {"a": "has no text to read"}


def test_beyond_the_limit_pages_stay(site: Site, run: Run) -> None:
    site.pages = {f"/docs/{n}": page(f"Page {n}") for n in range(10)}
    site.pages["/docs/"] = page("Home", *map(str, range(10)))
    assert len(run().held) == 11
    requests = len(site.requests)
    assert len(run(pages=4).held) == 11
    assert len(site.requests) == requests + 7  # robots.txt, two sitemaps, four pages
    assert len(run.notes) == 1
    assert run.failed == {}


def test_a_site_that_goes_down_loses_no_page(site: Site, run: Run) -> None:
    site.pages = {f"/docs/{n}": page(f"Page {n}") for n in range(60)}
    site.pages["/docs/"] = page("Home", *map(str, range(60)))
    assert len(run().held) == 61
    site.pages |= {f"/docs/{n}": ms.fails(502) for n in range(60)}
    requests = len(site.requests)
    run()
    assert len(run.held) == 61
    assert len(site.requests) - requests < 40
    assert "stopped answering (the server answers 502)" in run.failed[run.source]


# -- servers that misbehave ------------------------------------------------------------------------------


def test_another_try_after_a_passing_failure(site: Site, run: Run) -> None:
    site.pages = {
        "/docs/": [ms.fails(500), page("Home", "a", "b", "c", "d")],
        "/docs/a": [ms.fails(429, retry_after="7"), page("A")],
        "/docs/b": [ms.resets, ms.resets, page("B")],
        "/docs/c": ms.fails(503, retry_after="3600"),
        "/docs/d": ms.fails(404),
    }
    run(retries=3)
    assert run.held == ["/", "a", "b"]
    assert site.asked.count("/docs/c") == 1
    assert site.asked.count("/docs/d") == 1
    assert run.failed["c"] == "the server answers 503 and asks to wait 3600 s"
    assert 7 in run.slept
    assert {0.5, 1.0} <= set(run.slept)


@pytest.mark.parametrize("how", [ms.trickles, ms.trickles_headers, ms.stays_silent])
def test_a_page_that_never_ends(site: Site, run: Run, how: ms.Step) -> None:
    site.pages = {"/docs/": page("Home", "slow", "b"), "/docs/slow": how, "/docs/b": page("B")}
    run(timeout=0.15)
    assert run.held == ["/", "b"]
    assert "longer than 0.9 s" in run.failed["slow"] or "timed out" in run.failed["slow"]


def test_too_much_of_a_page(site: Site, run: Run) -> None:
    big = ms.html("Big", text="word " * 300_000)
    sizes = {"told": ms.sends(big), "packed": ms.sends(gzip.compress(big), content_encoding="gzip")}
    site.pages = {
        "/docs/": page("Home", *sizes, "bomb", "flood", "small"),
        **{f"/docs/{name}": step for name, step in sizes.items()},
        "/docs/bomb": ms.bomb,
        "/docs/flood": ms.floods,
        "/docs/small": ms.sends(gzip.compress(ms.html("Small")), content_encoding="gzip"),
    }
    run(timeout=5)
    assert run.held == ["/", "small"]
    assert run.failed["told"].startswith("too large (1.5 MB, 1.0 MB at most)")
    assert all(run.failed[name] == "too large (1.0 MB at most)" for name in ("packed", "bomb", "flood"))


def test_what_a_page_says_it_is(site: Site, run: Run) -> None:
    octets = ms.sends(ms.html("Octets"), content_type="application/octet-stream")
    endless = threading.Event()

    def movie(exchange: ms.Exchange) -> None:
        exchange.begin(content_type="video/mp4")
        try:
            for _ in range(1000):
                exchange.wfile.write(b"0" * 100_000)
            endless.set()
        except OSError:
            pass

    site.pages = {
        "/docs/": page(
            "Home", "octets", "movie", "binary", "notes.md", "plain", "x", "nothing", "br", "junk"
        ),
        "/docs/octets": octets,
        "/docs/movie": movie,
        "/docs/binary": ms.sends(b"\x7fELF\0\0\0" * 100),
        "/docs/notes.md": ms.sends("# Notes\n\nWritten down.", content_type="text/plain"),
        "/docs/plain": ms.sends("Plain words.", content_type="text/plain; charset=utf-8"),
        "/docs/x": ms.sends(ms.html("X"), content_type="application/xhtml+xml"),
        "/docs/nothing": ms.sends("<html><body><script>render()</script></body></html>"),
        "/docs/br": ms.sends(b"\x1b\x00", content_encoding="br"),
        "/docs/junk": ms.sends(b"no gzip", content_encoding="gzip"),
    }
    run()
    types = {path: document.media_type for path, document in run.index.documents.items()}
    assert types == {"/": "text/html", "notes.md": "text/markdown", "plain": "text/plain", "x": "text/html"}
    assert run.skipped["octets"] == "is application/octet-stream, which hyce doesn't read"
    assert "video/mp4" in run.skipped["movie"]
    assert run.skipped["nothing"] == "has no text to read"
    assert "no text" in run.failed["binary"]
    assert "'br'" in run.failed["br"]
    assert "broken" in run.failed["junk"]
    assert not endless.is_set()


def test_pdf_files(site: Site, run: Run) -> None:
    site.pages = {
        "/docs/": page("Home", "handbook.pdf", "copy.pdf", "broken.pdf"),
        "/docs/handbook.pdf": ms.sends(handbook(), content_type="application/pdf"),
        "/docs/copy.pdf": ms.sends(handbook(), content_type="application/pdf"),
        "/docs/broken.pdf": ms.sends(
            b"%PDF-1.4 and no more of it, though it is long enough", content_type="application/pdf"
        ),
    }
    run()
    assert run.held == ["/", "handbook.pdf"]
    found = run.index.documents["handbook.pdf"]
    assert found.media_type == "application/pdf"
    assert "<p>" in found.text
    assert run.skipped == {"copy.pdf": "the same as handbook.pdf, which is indexed"}
    assert set(run.failed) == {"broken.pdf"}
    assert not run.failed["broken.pdf"].startswith("/docs")


def test_charsets(site: Site, run: Run) -> None:
    text = "Größe: café"
    meta = '<meta charset="{}">'
    site.pages = {
        "/docs/": page("Home", *"abcdef"),
        "/docs/a": ms.sends(
            ms.html("A", text=text).decode().encode("latin-1"), content_type="text/html; charset=iso-8859-1"
        ),
        "/docs/b": ms.sends(ms.html("B", text=text), content_type="text/html; charset=ISO-8859-1"),
        "/docs/c": ms.sends(ms.html("C", text=text, head=meta.format("cp1252")).decode().encode("cp1252")),
        "/docs/d": ms.sends(ms.html("D", text=text), content_type="text/html; charset=punycode"),
        "/docs/e": ms.sends(ms.html("E", text=text, head=meta.format("no-such"))),
        "/docs/f": ms.sends(
            ms.html("F", text=text).decode().encode("cp1252"), content_type="text/html; charset=utf-8"
        ),
    }
    run()
    assert run.failed == {}
    assert all(text in run.index.documents[path].text for path in "abcdef")


def test_dates_are_those_of_changes_and_not_of_answers(site: Site, run: Run) -> None:
    moments = {"now": time.time(), "tomorrow": time.time() + 86_400, "then": 1_700_000_000, "epoch": 0}
    site.pages = {
        f"/docs/{name}": page(
            name, last_modified=time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(moment))
        )
        for name, moment in moments.items()
    }
    site.pages |= {"/docs/": page("Home", *moments, "odd"), "/docs/odd": page("odd", last_modified="lately")}
    run()
    dates = {path: document.date for path, document in run.index.documents.items() if document.date}
    assert dates == {"then": "2023-11-14"}


@pytest.mark.parametrize("zone", ["+99999999999999999999", "-9999999999999"])
def test_a_date_that_no_calendar_has(site: Site, run: Run, zone: str) -> None:
    told = f"Mon, 06 Jan 2020 10:00:00 {zone}"
    site.pages = {"/docs/": page("Home", last_modified=told, date=told)}
    assert run().held == ["/"]
    assert run.index.documents["/"].date is None


def test_a_header_that_goes_on_in_another_line_is_one_line(site: Site, run: Run) -> None:
    site.pages = {"/docs/": page("Home", "a"), "/docs/a": ms.sends("x", content_type="text/x\n\thyce: done")}
    run()
    assert run.skipped == {"a": "is text/x hyce: done, which hyce doesn't read"}


def test_a_reader_that_stops_leaves_no_thread_behind(site: Site, run: Run) -> None:
    site.pages = {f"/docs/{name}": ms.stays_silent for name in "bcdefgh"}
    site.pages |= {"/docs/": page("Home", *"abcdefgh"), "/docs/a": page("A")}
    before = threading.active_count()
    config = Config(web=dataclasses.replace(QUICK, timeout=30.0))
    items = web.read(run.source, config, run.index)
    assert [next(items).path, next(items).path] == ["/", "a"]
    wait_for(lambda: {"/docs/b", "/docs/c", "/docs/d"} < set(site.asked))
    items.close()  # type: ignore[attr-defined]
    own = [thread for thread in threading.enumerate() if thread.daemon and "_work" in thread.name]
    assert own == []
    assert threading.active_count() <= before + 8  # the server's own


# -- hyce index ------------------------------------------------------------------------------------------

SETTINGS: dict[str, object] = {"web.rate": 2000, "web.retries": 0, "web.timeout": 5}


@pytest.fixture(scope="module")
def finch(tmp_path_factory: pytest.TempPathFactory, kestrel: Home) -> Home:
    """A home for all tests below; each removes its sources, since a refresh takes all of an index."""
    home = Home(tmp_path_factory.mktemp("finch"), kestrel.models)
    home.index.mkdir(parents=True)
    for file in kestrel.index.iterdir():
        if file.is_file() and file.name not in ("current", "lock"):
            shutil.copy(file, home.index)  # the embedded catalogue, which takes longer than all else
    return home


def three_pages() -> dict[str, Any]:
    return {
        "/docs/": ms.tagged(
            '"1"', ms.html("Home", "gpu", "gpu/memory", text="Welcome to the cluster Finch.")
        ),
        "/docs/gpu": page("GPU", text="Ask for a GPU with --gres=gpu:finch:1 in your job script."),
        "/docs/gpu/memory": page("Memory", text="A node of Finch has 512 GB of memory."),
    }


def test_a_site_in_the_index(finch: Home, site: Site, tmp_path: Path) -> None:
    site.pages = three_pages()
    source = f"{site.origin}/docs/"
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "own.md").write_text("# Own\n\nA page of our own.\n", "utf-8")
    first = finch.hyce("index", str(tmp_path / "docs"), source, "--json", settings=SETTINGS)
    assert first.code == 0, first.err
    assert (first.json["documents"], first.json["removed"], first.json["failed"]) == (4, 0, 0)
    hit = finch.hyce("search", "How do I ask for a GPU?", "--json", settings=SETTINGS).json["hits"][0]
    assert (hit["source"], hit["path"]) == (source, "gpu")
    assert hit["url"].startswith(f"{source}gpu")
    again = finch.hyce("index", "--json", settings=SETTINGS)  # all known sources
    assert (again.json["embedded"], again.json["unchanged"], again.json["documents"]) == (0, 4, 4)

    site.pages["/docs/gpu"] = ms.fails(500)
    site.pages["/docs/gpu/memory"] = ms.fails(404)
    quiet = finch.hyce("index", "--quiet", settings=SETTINGS)
    assert (quiet.code, quiet.err) == (1, "hyce: gpu: the server answers 500\n")
    told = "2 pages, 3 passages in the index (0 passages embedded, 2 pages unchanged, 1 removed, 1 failed"
    assert quiet.out.startswith(told)
    assert quiet.out.count("\n") == 1
    site.pages["/docs/gpu"] = three_pages()["/docs/gpu"]
    quiet = finch.hyce("index", "--quiet", settings=SETTINGS)
    assert (quiet.code, quiet.err, quiet.out.count("\n")) == (0, "", 1)

    site.pages = {}
    down = finch.hyce("index", "--quiet", settings=SETTINGS)  # the other source is read all the same
    assert (down.code, down.err.count("\n"), down.out[:9]) == (1, 1, "1 pages, ")
    assert "no sitemap was found; nothing was changed" in down.err
    assert finch.hyce("search", "GPU", "--json", settings=SETTINGS).json["hits"]
    shouted = source.replace("http", "HTTP") + "#top"
    options = ("--remove", shouted, "--remove", str(tmp_path / "docs"), "--json")
    gone = finch.hyce("index", *options, settings=SETTINGS)
    assert (gone.code, gone.json["removed"]) == (0, 3)
    fails(finch.hyce("index", "https://user:secret@docs.example.org/", settings=SETTINGS), "user name")


def many_pages(count: int) -> dict[str, Any]:
    pages: dict[str, Any] = {
        f"/docs/{n}": page(f"Page {n}", text=f"Word{n} stands on this page and on no other one. " * 4)
        for n in range(count)
    }
    return pages | {"/docs/": page("Home", *map(str, range(count)))}


def test_a_run_that_ends_in_the_middle(finch: Home, site: Site) -> None:
    site.pages = many_pages(5)
    source = f"{site.origin}/docs/"
    assert finch.hyce("index", source, settings=SETTINGS).code == 0
    site.pages = many_pages(30) | {"/docs/15": ms.stays_silent, "/docs/3": ms.fails(404)}
    for how, code in ((signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)):
        site.requests.clear()
        process = finch.start("index", "--json", settings=SETTINGS | {"web.timeout": 300})
        wait_for(lambda: "/docs/18" in site.asked)
        process.send_signal(how)
        _, err = process.communicate(timeout=60)
        assert process.returncode == code, err
        assert err == (b"" if code < 0 else b"hyce: interrupted\n")
        found = finch.hyce("search", "Word3 stands on this page", "--json", settings=SETTINGS)
        assert found.json["hits"][0]["path"] == "3"  # nothing was published
    site.pages |= {"/docs/15": page("Page 15", text="Word15 is here again.")}
    last = finch.hyce("index", "--json", settings=SETTINGS)
    assert (last.code, last.json["documents"], last.json["removed"]) == (0, 30, 1)
    finch.hyce("index", "--remove", source, settings=SETTINGS)


# -- every night -----------------------------------------------------------------------------------------

UNITS = Path(__file__).parent.parent / "deploy" / "systemd"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_the_units_are_valid(tmp_path: Path) -> None:
    for unit in ("hyce-index.service", "hyce-index.timer"):
        text = (UNITS / unit).read_text("utf-8")
        # Verified is also that the program is there.
        (tmp_path / unit).write_text(text.replace("%h/hyce/bin/hyce", "/bin/true"), "utf-8")
    tool = ["systemd-analyze", "verify", "--user", "--man=no", *sorted(map(str, tmp_path.iterdir()))]
    done = subprocess.run(
        tool,
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_timer_starts_a_command_that_there_is() -> None:
    lines = (UNITS / "hyce-index.service").read_text("utf-8").splitlines()
    words = next(line for line in lines if line.startswith("ExecStart=")).split()
    assert words[0] == "ExecStart=%h/hyce/bin/hyce"  # where README.md installs it
    parsed = build_parser().parse_args(words[1:])
    assert (parsed.command, parsed.sources, parsed.quiet) == ("index", [], True)
    timer = (UNITS / "hyce-index.timer").read_text("utf-8")
    assert all(f"{name}=" in timer for name in ("OnCalendar", "RandomizedDelaySec", "Persistent"))
