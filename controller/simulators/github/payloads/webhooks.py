"""Webhook bodies and the deliveries that carried them, as JSON."""

from controller.simulators.github.payloads import accounts, actions
from controller.simulators.github.payloads.forms import node_id, stamp
from controller.simulators.github.payloads.repositories import webhook_repository
from controller.simulators.github.state import App, Delivery, Installation, Job, Json


def workflow_job(
    api: str, item: Job, action: str, target: Installation, *, absent_is_zero: bool = False
) -> Json:
    """The `workflow_job` event; a job of an environment carries its deployment."""
    owner = item.repository.owner
    user = accounts.simple_user(api, owner)
    body: Json = {
        "action": action,
        "workflow_job": actions.job(api, item, absent_is_zero=absent_is_zero),
        "repository": webhook_repository(api, item.repository, user),
        "sender": accounts.simple_user(api, item.run.actor),
        "installation": {"id": target.id, "node_id": node_id("Integration", target.id)},
    }
    if owner.type == "Organization":
        body["organization"] = accounts.organization(api, owner)
    if item.environment:
        body["deployment"] = _deployment(api, item)
    return body


def _deployment(api: str, item: Job) -> Json:
    repo = f"{api}/repos/{item.repository.full_name}"
    created = stamp(item.created_at)
    return {
        "url": f"{repo}/deployments/{item.id}",
        "id": item.id,
        "node_id": node_id("Deployment", item.id),
        "sha": item.run.head_sha,
        "ref": item.run.branch,
        "task": "deploy",
        "payload": {},
        "original_environment": "production",
        "environment": "production",
        "description": None,
        "creator": accounts.simple_user(api, item.repository.owner),
        "created_at": created,
        "updated_at": created,
        "statuses_url": f"{repo}/deployments/{item.id}/statuses",
        "repository_url": repo,
    }


def installation(api: str, item: Installation, action: str) -> Json:
    """The `installation` event."""
    body: Json = {
        "action": action,
        "installation": accounts.installation(api, item),
        "sender": accounts.simple_user(api, item.account),
    }
    if action in ("created", "deleted"):
        body["repositories"] = [
            {
                "id": repo.id,
                "node_id": node_id("Repository", repo.id),
                "name": repo.name,
                "full_name": repo.full_name,
                "private": repo.private,
            }
            for repo in item.account.repositories.values()
        ]
    return body


def ping(api: str, app: App, url: str) -> Json:
    """The `ping` event of an App's hook; it has no action."""
    created = stamp(app.created_at)
    hook = f"{api}/app/hook"
    return {
        "zen": "Keep it logically awesome.",
        "hook_id": app.hook_id,
        "hook": {
            "type": "App",
            "id": app.hook_id,
            "name": "web",
            "active": True,
            "events": accounts.EVENTS,
            "config": {"content_type": "json", "insecure_ssl": "0", "secret": "********", "url": url},
            "updated_at": created,
            "created_at": created,
            "app_id": app.id,
            "deliveries_url": f"{hook}/deliveries",
            "ping_url": f"{hook}/pings",
            "url": hook,
        },
    }


def delivery_item(item: Delivery) -> Json:
    """A line of the delivery list."""
    return {
        "id": item.id,
        "guid": item.guid,
        "delivered_at": stamp(item.delivered_at or item.created_at),
        "redelivery": item.redelivery,
        "duration": round(item.duration, 2),
        "status": item.status,
        "status_code": item.status_code,
        "event": item.event,
        "action": item.action,
        "installation_id": item.installation_id,
        "repository_id": item.repository_id,
        "throttled_at": None,
    }


def delivery(item: Delivery) -> Json:
    """A delivery with what was sent and what came back."""
    return delivery_item(item) | {
        "url": "",
        "request": {"headers": dict(item.request_headers), "payload": item.payload},
        "response": {"headers": dict(item.response_headers), "payload": item.response_body},
    }
