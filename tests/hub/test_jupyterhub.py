"""Two users of a JupyterHub: login in a browser, own jobs, no access to those of the other."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.calls import API
from tests.hub.conftest import USERS

pytestmark = pytest.mark.full


@pytest.mark.parametrize("name", USERS)
def test_the_login_leads_through_oauth_to_the_users_own_server(people, hub, name):
    visited = people[name].visited
    steps = [
        "/hub/login",
        f"/hub/spawn-pending/{name}",
        f"/user/{name}/lab",
        "/hub/api/oauth2/authorize",
        f"/user/{name}/oauth_callback",
        f"/user/{name}/lab",
    ]
    rest = iter(visited)
    assert all(step in rest for step in steps), visited
    assert hub.server(name).uids().real == hub.accounts[name].uid
    loaded = "() => Object.keys(window._JUPYTERLAB ?? {})"
    assert "jupyter-submarine" in people[name].page.evaluate(loaded)
    assert people[name].lab.errors == []


@pytest.mark.parametrize("name", USERS)
def test_a_job_runs_as_its_user_and_its_card_is_shown(people, hub, name):
    person = people[name]
    expect(person.lab.outputs().get_by_text("SUCCEEDED").first).to_be_visible()
    headers = {"Authorization": f"token {hub.token(name)}"}
    path = f"/user/{name}/{API}jobs/{person.job}"
    view = hub.ask(path, headers=headers).json
    assert (view["record"]["user"], view["mine"]) == (name, True), view
    log = hub.ask(f"{path}/log?task=worker:0&stream=stdout", headers=headers)
    assert log.body == f"hello from {name}\n".encode()


@pytest.mark.parametrize("name", USERS)
def test_the_panel_lists_the_users_own_jobs_only(people, hub, name):
    person = people[name]
    person.lab.open_lab()
    person.lab.command("submarine:jobs")
    options = person.page.get_by_role("listbox", name="Jobs").get_by_role("option")
    headers = {"Authorization": f"token {hub.token(name)}"}
    listed = hub.ask(f"/user/{name}/{API}jobs", headers=headers).json["jobs"]
    # Other tests may have run her job again.
    expect(options).to_have_count(len(listed))
    expect(options.last).to_have_attribute("title", re.compile(f"^{person.job}\\b"))
    assert {job["user"] for job in listed} == {name}
    other = next(it for it in people.values() if it is not person)
    assert person.job in [job["job_id"] for job in listed]
    assert other.job not in [job["job_id"] for job in listed]


@pytest.mark.parametrize("name", USERS)
def test_the_websocket_works_below_the_base_url(people, hub, name):
    greetings = people[name].greetings
    assert list(greetings) == [f"ws://127.0.0.1:{hub.port}/user/{name}/{API}channel"]
    assert {message["type"] for message in greetings.values()} == {"hello"}
