"""The watch cache: what it knows, how it recovers, and when it says that it does not know."""

from controller.domain.sightings import NodeView, PodPhase, PodView, Unknown
from tests.integration.gateways.kubernetes.conftest import JIT, World


def pods(world: World) -> PodView:
    view = world.gateway.pods()
    assert isinstance(view, PodView), view
    return view


def nodes(world: World) -> NodeView:
    view = world.gateway.nodes()
    assert isinstance(view, NodeView), view
    return view


async def test_the_view_passes_the_version_that_create_returned(world: World) -> None:
    created = await world.create("runner-1")
    await world.sim.settle()
    assert pods(world).resource_version >= created.resource_version
    assert "runner-1" in pods(world).pods


async def test_a_bookmark_moves_the_view_although_nothing_happened(world: World) -> None:
    before = pods(world).resource_version
    for number in range(3):
        await world.gateway.create_secret(f"runner-{number}", JIT, {})
    world.sim.send_bookmarks()
    await world.sim.settle()
    assert pods(world).resource_version == world.sim.store.rv > before


async def test_the_life_of_a_pod_is_followed_and_each_step_wakes(world: World) -> None:
    before = world.wakes.count
    await world.create("runner-1")
    await world.advance(10)
    assert pods(world).pods["runner-1"].phase is PodPhase.RUNNING
    await world.advance(300)
    assert pods(world).pods["runner-1"].phase is PodPhase.SUCCEEDED
    await world.gateway.delete_pod("runner-1")
    await world.sim.settle()
    assert pods(world).pods == {}
    assert world.wakes.count - before >= 4


async def test_a_node_that_dies_is_seen_as_unreachable(world: World) -> None:
    world.sim.kill_kubelet("board-1")
    await world.advance(40)
    node = nodes(world).nodes["board-1"]
    assert (node.ready, node.unreachable, node.slots) == (False, True, 1)


async def test_a_dropped_watch_goes_on_where_it_was(world: World) -> None:
    lists = world.sim.requests.times("list pods")
    world.sim.drop_watches()
    await world.sim.settle()
    await world.create("runner-1")
    await world.advance(5)
    assert "runner-1" in pods(world).pods
    assert world.sim.requests.times("list pods") == lists


async def test_a_version_that_is_too_old_makes_it_list_again(world: World) -> None:
    lists = world.sim.requests.times("list pods")
    world.sim.compact()
    world.sim.drop_watches()
    await world.sim.settle()
    await world.create("runner-1")
    await world.advance(5)
    assert "runner-1" in pods(world).pods
    assert world.sim.requests.times("list pods") == lists + 1


async def test_what_was_deleted_while_nobody_watched_is_gone_after_the_list(world: World) -> None:
    await world.create("runner-1")
    await world.sim.settle()
    rule = world.sim.faults.add(operation="watch pods", hold="before")
    world.sim.drop_watches()
    await world.advance(5)
    assert rule.held
    await world.gateway.force_delete_pod("runner-1")
    world.sim.compact()
    world.sim.faults.release(rule.name)
    await world.advance(5)
    assert pods(world).pods == {}


async def test_a_watch_that_cannot_be_opened_again_makes_the_view_unknown_at_once(world: World) -> None:
    await world.create("runner-1")
    await world.sim.settle()
    away = world.sim.faults.add(operation="(watch|list) pods", status=503, times=None)
    world.sim.drop_watches()
    await world.advance(2)
    assert away.hits
    assert isinstance(world.gateway.pods(), Unknown)
    assert isinstance(world.gateway.nodes(), NodeView)
    before = world.wakes.count
    world.sim.faults.clear()
    await world.advance(15)
    assert "runner-1" in pods(world).pods
    assert world.wakes.count > before


async def test_a_watch_that_hangs_while_it_is_opened_again_makes_the_view_unknown_in_time(
    world: World,
) -> None:
    await world.create("runner-1")
    await world.sim.settle()
    rule = world.sim.faults.add(operation="watch pods", hold="before")
    world.sim.drop_watches()
    await world.advance(20)
    assert rule.held
    assert "runner-1" in pods(world).pods
    await world.advance(20)
    assert isinstance(world.gateway.pods(), Unknown)
    assert isinstance(world.gateway.nodes(), NodeView)
    world.sim.faults.clear()
    await world.advance(15)
    assert "runner-1" in pods(world).pods


async def test_an_empty_list_after_an_error_is_never_shown(world: World) -> None:
    await world.create("runner-1")
    await world.sim.settle()
    world.sim.faults.add(operation="(watch|list) pods", status=500, times=6)
    world.sim.compact()
    world.sim.drop_watches()
    for _ in range(60):
        await world.advance(1)
        view = world.gateway.pods()
        assert isinstance(view, Unknown) or "runner-1" in view.pods


async def test_an_idle_watch_costs_no_requests(world: World) -> None:
    before = len(world.sim.requests)
    await world.advance(3600)
    assert len(world.sim.requests) == before
