"""Labels, keys, names and pools."""

from hypothesis import given
from hypothesis import strategies as st

from controller.domain.jobs import DemandKey, Entity, EntityType, demand_key, normalise_labels
from controller.domain.pools import Catalogue, Pool
from controller.domain.workers import NameRule

ORG, USER = Entity(5, "example-org", EntityType.ORGANIZATION), Entity(6, "ada", EntityType.USER)


def a_pool(name: str, *label_sets: tuple[str, ...]) -> Pool:
    return Pool(name, name, label_sets, "image", {})


CATALOGUE = Catalogue((a_pool("one", ("riscv",), ("riscv", "ubuntu")), a_pool("two", ("gpu", "riscv"))))


@given(st.lists(st.text(max_size=5)))
def test_one_form_for_a_label_set_whatever_its_order_case_or_doubles(labels: list[str]) -> None:
    form = normalise_labels(labels)
    assert normalise_labels(form) == form
    assert normalise_labels([*reversed(labels), *labels]) == form
    assert list(form) == sorted(set(form))


def test_runners_of_a_personal_account_belong_to_one_repository() -> None:
    labels = ("riscv",)
    assert demand_key(ORG, "example-org/llvm", labels) == DemandKey(5, labels)
    assert demand_key(USER, "ada/llvm", labels) == DemandKey(6, labels, "ada/llvm")


def test_a_pool_serves_exactly_its_label_sets() -> None:
    assert CATALOGUE.serving(("riscv", "ubuntu")) == CATALOGUE.named("one")
    assert CATALOGUE.serving(("gpu", "riscv")) == CATALOGUE.named("two")
    for labels in ((), ("ubuntu",), ("gpu", "riscv", "ubuntu")):
        assert CATALOGUE.serving(labels) is None
    assert CATALOGUE.named(None) is None


def test_the_nearest_label_set_shares_the_most_and_differs_the_least() -> None:
    assert CATALOGUE.nearest(("gpu", "riscv", "x")) == ("gpu", "riscv")
    assert CATALOGUE.nearest(("riscv", "x")) == ("riscv",)
    assert CATALOGUE.nearest(("windows",)) is None
    assert CATALOGUE.nearest(()) is None
    assert Catalogue(()).nearest(("riscv",)) is None


def test_a_prefix_that_is_also_another_environments_prefix_does_not_make_a_runner_ours() -> None:
    prod, staging = NameRule.of("rise", "prod"), NameRule.of("rise", "staging")
    assert prod.ours(prod.name("a1b2c3d4e"))
    assert staging.ours(staging.name("a1b2c3d4e"))
    assert not prod.ours(staging.name("a1b2c3d4e"))
    assert not staging.ours(prod.name("a1b2c3d4e"))
    for name in ("rise-a1b2c3d4", "rise-a1b2c3d4ef", "rise-A1B2C3D4E", "xrise-a1b2c3d4e", "rise-a1b2c3d4e\n"):
        assert not prod.ours(name)
