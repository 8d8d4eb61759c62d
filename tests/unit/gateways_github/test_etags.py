"""The cache of conditional GETs."""

from controller.gateways.github.answers import Answer
from controller.gateways.github.etags import ETagCache


def kept(body: bytes = b"{}", etag: str = '"x"') -> Answer:
    return Answer("anything", 200, {"etag": etag}, body)


def test_an_answer_belongs_to_one_installation_and_url() -> None:
    cache = ETagCache()
    mine = kept()
    cache.put(7, "/a", mine)
    assert cache.get(7, "/a") is mine
    assert cache.get(8, "/a") is None
    assert cache.get(7, "/a?page=2") is None


def test_the_least_recently_used_goes_first() -> None:
    cache = ETagCache(max_entries=2)
    cache.put(7, "/a", kept())
    cache.put(7, "/b", kept())
    cache.get(7, "/a")
    cache.put(7, "/c", kept())
    assert [cache.get(7, url) is not None for url in ("/a", "/b", "/c")] == [True, False, True]


def test_size_is_bounded_too_and_replaced_answers_do_not_count() -> None:
    cache = ETagCache(max_bytes=100)
    for _ in range(5):
        cache.put(7, "/a", kept(b"x" * 60))
    assert cache.get(7, "/a") is not None
    cache.put(7, "/b", kept(b"x" * 60))
    assert cache.get(7, "/a") is None
    cache.put(7, "/huge", kept(b"x" * 101))
    assert cache.get(7, "/huge") is None
    assert cache.get(7, "/b") is not None


def test_without_an_etag_nothing_is_kept_and_the_old_answer_goes() -> None:
    cache = ETagCache()
    cache.put(7, "/a", kept())
    cache.put(7, "/a", Answer("anything", 200, {}, b"{}"))
    assert len(cache) == 0


def test_an_installation_is_forgotten_alone() -> None:
    cache = ETagCache()
    cache.put(7, "/a", kept())
    cache.put(8, "/a", kept())
    cache.forget(7)
    assert cache.get(7, "/a") is None
    assert cache.get(8, "/a") is not None
