"""Users, organizations, Apps, installations and tokens as JSON."""

from urllib.parse import quote

from controller.simulators.github.auth import Token
from controller.simulators.github.payloads.forms import HTML, maybe_stamp, node_id, stamp
from controller.simulators.github.payloads.repositories import repository
from controller.simulators.github.state import Account, App, Installation, Json, Repository

EVENTS = ["workflow_job"]
BOTS = 200_000_000  # added to the id of an App: the id of its bot


def simple_user(api: str, account: Account) -> Json:
    """The `simple-user` of an account, organizations and Apps' bots included."""
    url = f"{api}/users/{quote(account.login)}"
    return {
        "login": account.login,
        "id": account.id,
        "node_id": node_id(account.type, account.id),
        "avatar_url": f"https://avatars.githubusercontent.com/u/{account.id}?v=4",
        "gravatar_id": "",
        "url": url,
        "html_url": f"{HTML}/{quote(account.login)}",
        "followers_url": f"{url}/followers",
        "following_url": f"{url}/following{{/other_user}}",
        "gists_url": f"{url}/gists{{/gist_id}}",
        "starred_url": f"{url}/starred{{/owner}}{{/repo}}",
        "subscriptions_url": f"{url}/subscriptions",
        "organizations_url": f"{url}/orgs",
        "repos_url": f"{url}/repos",
        "events_url": f"{url}/events{{/privacy}}",
        "received_events_url": f"{url}/received_events",
        "type": account.type,
        "site_admin": False,
    }


def organization(api: str, account: Account) -> Json:
    """The `organization` of a webhook."""
    url = f"{api}/orgs/{account.login}"
    return {
        "login": account.login,
        "id": account.id,
        "node_id": node_id(account.type, account.id),
        "url": url,
        "repos_url": f"{url}/repos",
        "events_url": f"{url}/events",
        "hooks_url": f"{url}/hooks",
        "issues_url": f"{url}/issues",
        "members_url": f"{url}/members{{/member}}",
        "public_members_url": f"{url}/public_members{{/member}}",
        "avatar_url": f"https://avatars.githubusercontent.com/u/{account.id}?v=4",
        "description": None,
    }


def app_owner(app: App) -> Account:
    """The account that owns an App; it exists only in payloads."""
    return Account(app.id, f"{app.slug}-owner", "Organization", app.created_at)


def bot(app: App) -> Account:
    """The account under which an App acts; it exists only in payloads."""
    return Account(BOTS + app.id, f"{app.slug}[bot]", "Bot", app.created_at)


def integration(api: str, app: App, installations: int) -> Json:
    """The App itself."""
    return {
        "id": app.id,
        "slug": app.slug,
        "client_id": app.client_id,
        "node_id": node_id("App", app.id),
        "owner": simple_user(api, app_owner(app)),
        "name": app.slug,
        "description": None,
        "external_url": "https://example.com",
        "html_url": f"{HTML}/apps/{app.slug}",
        "created_at": stamp(app.created_at),
        "updated_at": stamp(app.created_at),
        "permissions": dict(app.permissions),
        "events": EVENTS,
        "installations_count": installations,
    }


def installation(api: str, item: Installation) -> Json:
    """An installation, for REST and webhooks alike."""
    account = item.account
    org = account.type == "Organization"
    settings = f"organizations/{account.login}/settings" if org else "settings"
    return {
        "id": item.id,
        "account": simple_user(api, account),
        "repository_selection": "all",
        "access_tokens_url": f"{api}/app/installations/{item.id}/access_tokens",
        "repositories_url": f"{api}/installation/repositories",
        "html_url": f"{HTML}/{settings}/installations/{item.id}",
        "app_id": item.app.id,
        "app_slug": item.app.slug,
        "target_id": account.id,
        "target_type": account.type,
        "permissions": dict(item.permissions),
        "events": EVENTS,
        "created_at": stamp(item.created_at),
        "updated_at": stamp(item.suspended_at or item.created_at),
        "single_file_name": None,
        "has_multiple_single_files": False,
        "single_file_paths": [],
        "suspended_by": simple_user(api, account) if item.suspended_at else None,
        "suspended_at": maybe_stamp(item.suspended_at),
    }


def installation_token(api: str, token: Token, repositories: list[Repository] | None) -> Json:
    """The answer to a mint."""
    body: Json = {
        "token": token.value,
        "expires_at": stamp(token.expires_at),
        "permissions": dict(token.permissions),
        "repository_selection": "all" if repositories is None else "selected",
    }
    if repositories is not None:
        owner = simple_user(api, token.installation.account)
        body["repositories"] = [repository(api, each, owner) for each in repositories]
    return body
