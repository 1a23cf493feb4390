"""Calls a server as the published clients do: `interactiveai` with its `agent` extra, and `parlant-client`.

Usage: parlant_clients.py BASE_URL KEY. Each function named `test_…` is a test.
"""

import asyncio
import sys
import time
import warnings

import httpx
from interactiveai.agent import InteractiveAgentClient
from interactiveai.agent.errors import AuthError, ConflictError, NotFoundError
from interactiveai.agent.session_events import AssistantMessage, StatusEvent, UserMessage
from parlant.client import AsyncParlantClient
from parlant.client.core.api_error import ApiError
from parlant.client.types.agent_tag_update_params import AgentTagUpdateParams
from parlant.client.types.consumption_offsets_update_params import ConsumptionOffsetsUpdateParams
from parlant.client.types.customer_tag_update_params import CustomerTagUpdateParams
from parlant.client.types.participant import Participant
from parlant.client.types.session_labels_update_params import SessionLabelsUpdateParams
from parlant.client.types.session_metadata_update_params import SessionMetadataUpdateParams

URL, KEY = sys.argv[1], sys.argv[2]
AGENT = "interactiveAgent"


def vendor():
    return InteractiveAgentClient(base_url=URL, api_key=KEY)


def raw():
    http = httpx.AsyncClient(headers={"Authorization": f"Bearer {KEY}"}, timeout=30)
    return AsyncParlantClient(base_url=URL, httpx_client=http)


async def until_ready(session, **options):
    """Events of a session up to the end of its turn, and those that are not part of a turn."""
    events = []
    async for event in session.events(**options):
        events.append(event)
        if isinstance(event, StatusEvent) and event.status in ("ready", "error", "cancelled"):
            return events


async def status_of(call):
    try:
        await call
    except ApiError as error:
        return error.status_code
    return None


# The vendor's SDK.

async def test_a_session_is_opened_once_and_answers():
    async with vendor() as client:
        session = await client.sessions.open(id="zendesk-42", variables={"plan": "pro", "seats": 3, "tags": ["a"]})
        assert session.customer_id == "zendesk-42" and session.mode == "auto", session.metadata
        assert session.metadata["session_key"] == "zendesk-42" and session.last_event_offset == -1
        again = await client.sessions.open(id="zendesk-42")
        assert again.id == session.id
        posted = await session.post_user_message("I can't log in")
        assert (posted.source, posted.content, posted.offset) == ("customer", "I can't log in", posted.offset)
        events = await asyncio.wait_for(until_ready(session, min_offset=0), 30)
        assert isinstance(events[0], UserMessage) and events[0].text == "I can't log in"
        assert any(isinstance(event, AssistantMessage) and event.text for event in events), events
        assert events[-1].status == "ready" and events[-1].stage == "completed"
        offsets = [event.offset for event in events]
        assert offsets == sorted(set(offsets))
        messages = await session.messages()
        assert [message.source for message in messages] == ["customer", "ai_agent"]


async def test_events_go_on_over_idle_reconnects():
    async with vendor() as client:
        session = await client.sessions.open(id="idle")
        seen = []

        async def follow():
            async for event in session.events(wait_for_data=1, idle_reconnect_delay=0.1):
                seen.append(event)
                if len([e for e in seen if isinstance(e, StatusEvent) and e.status == "ready"]) == 2:
                    return

        following = asyncio.create_task(follow())
        await asyncio.sleep(3.5)  # Three streams end in the meantime, because nothing comes.
        assert not seen
        other = await client.sessions.get(id=session.id)
        await other.post_user_message("one")
        while not any(isinstance(event, StatusEvent) and event.status == "ready" for event in seen):
            await asyncio.sleep(0.02)
        await asyncio.sleep(2.5)
        await other.post_user_message("two")
        await asyncio.wait_for(following, 30)
        offsets = [event.offset for event in seen]
        assert offsets == sorted(set(offsets)), "nothing comes twice"
        assert [event.text for event in seen if isinstance(event, UserMessage)] == ["one", "two"]


async def test_a_person_takes_over():
    async with vendor() as client:
        session = await client.sessions.open(id="handover")
        await session.set_manual_mode()
        await session.refresh()
        assert session.mode == "manual"
        await session.post_user_message("Is anybody there?")
        answer = await session.post_human_agent_message("I am.", agent_name="Ann")
        assert answer.source == "human_agent"
        await session.post_system_message("The user is idle.")
        note = await session.post_internal_note("A good customer", author="Ann")
        assert note.source == "internal_note"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            await session.post_human_handover("Still here.", agent_name="Ann")
        await asyncio.sleep(0.3)
        sources = [message.source for message in await session.messages()]
        assert sources == ["customer", "human_agent", "human_agent", "internal_note", "human_agent"], sources
        await session.set_automatic_mode()
        await asyncio.sleep(0.3)
        assert len(await session.messages()) == 5, "nothing is answered later"
        await session.post_user_message("And the agent?")
        events = await asyncio.wait_for(until_ready(session), 30)
        assert any(isinstance(event, AssistantMessage) for event in events), events


async def test_a_note_makes_the_agent_speak():
    async with vendor() as client:
        session = await client.sessions.open(id="noted")
        await session.post_internal_note("Later", author="Ann", trigger_processing=False)
        assert [message.source for message in await session.messages()] == ["internal_note"]
        await session.post_internal_note("Say hello", author="Ann")
        events = await asyncio.wait_for(until_ready(session), 30)
        assert events[-1].status == "ready"
        assert [m.source for m in await session.messages()] == ["internal_note", "internal_note", "ai_agent"]


async def test_customers_and_their_sessions():
    async with vendor() as client:
        customer = await client.customers.register(
            id="acme", name="Acme", variables={"plan": "pro", "on": True, "none": None}, metadata={"crm": "7"}
        )
        first = await customer.new_session(title="One")
        second = await customer.new_session()
        assert (await customer.latest_session()).id == second.id
        assert [session.id for session in await customer.list_sessions()] == [second.id, first.id]
        found = await client.customers.retrieve("acme")
        assert found.name == "Acme" and found.metadata == {"crm": "7"}, found.metadata
        assert (await client.customers.get_variables("acme"))["plan"] == "pro"
        assert (await client.customers.get_variables("acme"))["on"] == "true"
        await client.customers.update_name("acme", "Acme Inc.")
        await client.customers.set_variables("acme", {"plan": "free"})
        found = await client.customers.retrieve("acme")
        assert found.name == "Acme Inc." and found.variables["plan"] == "free", found.variables
        await second.update_metadata({"a": "b"}, unset=["session_key"])
        await second.refresh()
        assert second.metadata == {"a": "b"}
        listed = await client.sessions.list(customer_id="acme")
        assert [session.id for session in listed] == [second.id, first.id]


async def test_errors_are_the_vendors():
    async with vendor() as client:
        for call in (client.sessions.get(id="none"), client.customers.retrieve("none")):
            try:
                await call
                raise AssertionError("it must not be there")
            except NotFoundError:
                pass
    async with InteractiveAgentClient(base_url=URL, api_key="wrong") as client:
        try:
            await client.sessions.open(id="x")
            raise AssertionError("the key is wrong")
        except AuthError:
            pass


# The client that it is built on.

async def test_sessions_of_the_raw_client():
    client = raw()
    created = await client.sessions.create(agent_id=AGENT, customer_id="raw", title="T", metadata={"a": 1}, labels=["x"])
    assert created.mode == "auto" and created.consumption_offsets.client is None and created.labels == ["x"]
    guest = await client.sessions.create(agent_id=AGENT)
    assert guest.customer_id == "guest"
    changed = await client.sessions.update(
        created.id, title="U", mode="manual", consumption_offsets=ConsumptionOffsetsUpdateParams(client=3),
        metadata=SessionMetadataUpdateParams(set_={"b": "c"}, unset=["a"]),
        labels=SessionLabelsUpdateParams(upsert=["y"], remove=["x"]),
    )
    assert (changed.title, changed.mode, changed.metadata) == ("U", "manual", {"b": "c"})
    assert changed.consumption_offsets.client == 3 and changed.labels == ["y"]
    assert (await client.sessions.retrieve(created.id)) == changed
    listed = await client.sessions.list(customer_id="raw")
    assert [session.id for session in listed] == [created.id], "a list without a limit is an array"
    second = await client.sessions.create(agent_id=AGENT, customer_id="raw")
    page = await client.sessions.list(customer_id="raw", limit=1, sort="desc")
    assert [session.id for session in page.items] == [second.id] and page.total_count == 2 and page.has_more
    rest = await client.sessions.list(customer_id="raw", limit=1, sort="desc", cursor=page.next_cursor)
    assert [session.id for session in rest.items] == [created.id] and not rest.has_more
    assert [session.id for session in await client.sessions.list(labels=["y"])] == [created.id]
    await client.sessions.delete(second.id)
    assert await status_of(client.sessions.retrieve(second.id)) == 404
    await client.sessions.delete_many(customer_id="raw")
    assert await client.sessions.list(customer_id="raw") == []
    assert await status_of(client.sessions.create(agent_id="nobody")) == 404


async def test_events_of_the_raw_client():
    client = raw()
    session = await client.sessions.create(agent_id=AGENT, customer_id="raw-events")
    posted = await client.sessions.create_event(session.id, kind="message", source="customer", message="hello")
    assert (posted.kind, posted.source, posted.offset, posted.deleted) == ("message", "customer", 0, False)
    assert posted.trace_id == posted.correlation_id
    events, over = [], False
    while not over:
        least = events[-1].offset + 1 if events else 0
        events += await client.sessions.list_events(session.id, min_offset=least, wait_for_data=10)
        over = events[-1].kind == "status" and events[-1].data["status"] == "ready"
    assert events[0] == posted and {event.trace_id for event in events} == {posted.trace_id}
    assert events[-1].data["data"]["stage"] == "completed"
    messages = await client.sessions.list_events(session.id, kinds="message", wait_for_data=0)
    assert [event.source for event in messages] == ["customer", "ai_agent"]
    assert await client.sessions.list_events(session.id, trace_id=posted.trace_id, wait_for_data=0) == events
    assert await client.sessions.list_events(session.id, source="customer", wait_for_data=0) == [posted]
    assert await client.sessions.read_event(session.id, posted.id) == posted
    last = events[-1].offset + 1
    assert await client.sessions.list_events(session.id, min_offset=last, wait_for_data=0) == []
    started = time.monotonic()
    assert await status_of(client.sessions.list_events(session.id, min_offset=last, wait_for_data=1)) == 504
    assert time.monotonic() - started >= 1
    custom = await client.sessions.create_event(session.id, kind="custom", source="customer_ui", data={"x": 1})
    assert custom.data == {"x": 1}
    status = await client.sessions.create_event(session.id, kind="status", source="human_agent", status="typing", data={})
    assert status.data["status"] == "typing"
    human = await client.sessions.create_event(
        session.id, kind="message", source="human_agent", message="Hi", participant=Participant(display_name="Ann")
    )
    assert human.data["participant"]["display_name"] == "Ann"
    asked = await client.sessions.create_event(session.id, kind="message", source="ai_agent")
    assert asked.kind == "status" and asked.data["status"] == "acknowledged"
    for wrong in (
        dict(kind="message", source="customer"),
        dict(kind="message", source="ai_agent", message="x"),
        dict(kind="message", source="human_agent", message="x"),
        dict(kind="custom", source="customer_ui"),
        dict(kind="tool", source="system"),
    ):
        assert await status_of(client.sessions.create_event(session.id, **wrong)) == 422, wrong
    assert await status_of(client.sessions.list_events("none", wait_for_data=0)) == 404


async def test_customers_variables_and_agents_of_the_raw_client():
    client = raw()
    customer = await client.customers.create(name="Anna", id="raw-anna", metadata={"k": "v"})
    assert (customer.id, customer.metadata, customer.tags) == ("raw-anna", {"k": "v"}, [])
    assert await status_of(client.customers.create(name="Anna", id="raw-anna")) == 409
    assert (await client.customers.update("raw-anna", name="A.")).name == "A."
    assert any(found.id == "raw-anna" for found in await client.customers.list())
    assert (await client.customers.list(limit=1)).total_count >= 1
    variable = await client.context_variables.create(name="raw-plan", description="What is paid for")
    assert await status_of(client.context_variables.create(name="raw-plan")) == 409
    assert any(found.id == variable.id for found in await client.context_variables.list())
    value = await client.context_variables.set_value(variable.id, "raw-anna", data={"tier": 2})
    assert value.data == {"tier": 2}
    assert (await client.context_variables.get_value(variable.id, "raw-anna")).data == {"tier": 2}
    read = await client.context_variables.retrieve(variable.id)
    assert read.key_value_pairs["raw-anna"].data == {"tier": 2}
    assert (await client.context_variables.update(variable.id, name="raw-tariff")).name == "raw-tariff"
    await client.context_variables.delete_value(variable.id, "raw-anna")
    assert await status_of(client.context_variables.get_value(variable.id, "raw-anna")) == 404
    await client.context_variables.delete(variable.id)
    await client.customers.delete("raw-anna")
    assert await status_of(client.customers.retrieve("raw-anna")) == 404
    agents = await client.agents.list()
    assert AGENT in [agent.id for agent in agents]
    assert (await client.agents.retrieve(AGENT)).composition_mode == "fluid"


async def test_events_are_deleted_and_described():
    client = raw()
    session = await client.sessions.create(agent_id=AGENT)
    first = await client.sessions.create_event(
        session.id, kind="message", source="customer", message="one", metadata={"a": 1}
    )
    assert first.metadata == {"a": 1}
    events = await until_completed(client, session.id, 0)
    second = await client.sessions.create_event(session.id, kind="message", source="customer", message="two")
    await until_completed(client, session.id, second.offset)
    assert await status_of(client.sessions.delete_events(session.id, min_offset=second.offset + 1)) == 422
    await client.sessions.delete_events(session.id, min_offset=second.offset)
    assert await client.sessions.list_events(session.id, wait_for_data=0) == events
    assert await status_of(client.sessions.read_event(session.id, second.id)) == 404
    third = await client.sessions.create_event(session.id, kind="message", source="customer", message="three")
    assert third.offset > second.offset
    changed = await client.sessions.update_event(
        session.id, first.id, metadata=SessionMetadataUpdateParams(set_={"b": 2}, unset=["a"])
    )
    assert changed.metadata == {"b": 2}
    assert await client.sessions.read_event(session.id, first.id) == changed


async def until_completed(client, session, least):
    """Events from an offset on, until the turn is over."""
    events = []
    while not events or events[-1].kind != "status" or events[-1].data["status"] != "ready":
        least = events[-1].offset + 1 if events else least
        events += await client.sessions.list_events(session, min_offset=least, wait_for_data=10)
    return events


async def test_tags_agents_and_what_holds_for_all():
    client = raw()
    vip = await client.tags.create(name="vip")
    assert await status_of(client.tags.create(name="vip")) == 409
    assert [tag.id for tag in await client.tags.list(name="vip")] == [vip.id]
    assert (await client.tags.update(vip.id, name="gold")).name == (await client.tags.retrieve(vip.id)).name == "gold"
    customer = await client.customers.create(name="Vera", id="vera", tags=[vip.id])
    assert customer.tags == [vip.id]
    assert await status_of(client.customers.create(name="No", tags=["none"])) == 404
    variable = await client.context_variables.create(name="tier", tags=[vip.id])
    assert [found.id for found in await client.context_variables.list(tag_id=vip.id)] == [variable.id]
    for key in ("DEFAULT", f"tag:{vip.id}", "vera"):
        assert (await client.context_variables.set_value(variable.id, key, data=key)).data == key
    agent = await client.agents.create(name="Helper", id="helper", description="Be kind.", tags=[vip.id])
    assert (agent.id, agent.description, agent.tags) == ("helper", "Be kind.", [vip.id])
    assert await status_of(client.agents.create(name="Helper", id="helper")) == 409
    assert (await client.agents.update("helper", name="H.", tags=AgentTagUpdateParams(remove=[vip.id]))).tags == []
    assert (await client.agents.retrieve("helper")).name == "H."
    session = await client.sessions.create(agent_id="helper", customer_id="vera")
    assert (await client.sessions.retrieve(session.id)).agent_id == "helper"
    await client.agents.delete("helper")
    assert await status_of(client.agents.retrieve("helper")) == 404
    updated = await client.customers.update("vera", tags=CustomerTagUpdateParams(remove=[vip.id]))
    assert updated.tags == []
    await client.context_variables.delete_many(tag_id=vip.id)
    assert variable.id not in [found.id for found in await client.context_variables.list()]
    await client.tags.delete(vip.id)
    assert await status_of(client.tags.retrieve(vip.id)) == 404


async def test_the_guest_of_the_raw_client():
    client = raw()
    guest = await client.sessions.create(agent_id=AGENT, title="by nobody")
    found = await client.sessions.list(customer_id="guest")
    assert guest.id in [session.id for session in found] and {session.customer_id for session in found} == {"guest"}
    assert (await client.customers.retrieve(guest.customer_id)).id == "guest"


async def main():
    tests = [(name, test) for name, test in globals().items() if name.startswith("test_")]
    for name, test in tests:
        try:
            await asyncio.wait_for(test(), 90)
        except BaseException:
            print(f"FAILED {name}", file=sys.stderr)
            raise
    print(f"parlant: {len(tests)} passed, 0 failed")


asyncio.run(main())
