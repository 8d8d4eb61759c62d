"""Repositories as JSON: the fields that REST's full and minimal kinds share, and the webhook kind."""

from controller.simulators.github.payloads.forms import HTML, node_id, stamp
from controller.simulators.github.state import Json, Repository

TEMPLATES = {
    "archive_url": "/{archive_format}{/ref}",
    "assignees_url": "/assignees{/user}",
    "blobs_url": "/git/blobs{/sha}",
    "branches_url": "/branches{/branch}",
    "collaborators_url": "/collaborators{/collaborator}",
    "comments_url": "/comments{/number}",
    "commits_url": "/commits{/sha}",
    "compare_url": "/compare/{base}...{head}",
    "contents_url": "/contents/{+path}",
    "contributors_url": "/contributors",
    "deployments_url": "/deployments",
    "downloads_url": "/downloads",
    "events_url": "/events",
    "forks_url": "/forks",
    "git_commits_url": "/git/commits{/sha}",
    "git_refs_url": "/git/refs{/sha}",
    "git_tags_url": "/git/tags{/sha}",
    "hooks_url": "/hooks",
    "issue_comment_url": "/issues/comments{/number}",
    "issue_events_url": "/issues/events{/number}",
    "issues_url": "/issues{/number}",
    "keys_url": "/keys{/key_id}",
    "labels_url": "/labels{/name}",
    "languages_url": "/languages",
    "merges_url": "/merges",
    "milestones_url": "/milestones{/number}",
    "notifications_url": "/notifications{?since,all,participating}",
    "pulls_url": "/pulls{/number}",
    "releases_url": "/releases{/id}",
    "stargazers_url": "/stargazers",
    "statuses_url": "/statuses/{sha}",
    "subscribers_url": "/subscribers",
    "subscription_url": "/subscription",
    "tags_url": "/tags",
    "teams_url": "/teams",
    "trees_url": "/git/trees{/sha}",
}


def repository(api: str, item: Repository, owner: Json) -> Json:
    """The fields that are required of `repository` and allowed in `minimal-repository`."""
    url = f"{api}/repos/{item.full_name}"
    page = f"{HTML}/{item.full_name}"
    created = stamp(item.created_at)
    return {
        "id": item.id,
        "node_id": node_id("Repository", item.id),
        "name": item.name,
        "full_name": item.full_name,
        "private": item.private,
        "owner": owner,
        "html_url": page,
        "description": None,
        "fork": False,
        "url": url,
        **{name: url + suffix for name, suffix in TEMPLATES.items()},
        "created_at": created,
        "updated_at": created,
        "pushed_at": created,
        "git_url": f"git://github.com/{item.full_name}.git",
        "ssh_url": f"git@github.com:{item.full_name}.git",
        "clone_url": f"{page}.git",
        "svn_url": page,
        "homepage": None,
        "mirror_url": None,
        "size": 1,
        "stargazers_count": 0,
        "watchers_count": 0,
        "language": "C",
        "has_issues": True,
        "has_projects": False,
        "has_downloads": False,
        "has_wiki": False,
        "has_pages": False,
        "forks_count": 0,
        "archived": False,
        "disabled": False,
        "open_issues_count": 0,
        "license": None,
        "forks": 0,
        "open_issues": 0,
        "watchers": 0,
        "default_branch": "main",
    }


def webhook_repository(api: str, item: Repository, owner: Json) -> Json:
    """The `repository` of a webhook."""
    return repository(api, item, owner) | {
        "is_template": False,
        "web_commit_signoff_required": False,
        "topics": [],
        "visibility": "private" if item.private else "public",
        "custom_properties": {},
        "allow_forking": True,
    }
