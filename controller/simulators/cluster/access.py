"""Who may do what: accounts by token, each with rules as RBAC knows them. The first account may do everything."""

from collections.abc import Sequence
from dataclasses import dataclass

from controller.simulators.cluster.requests import Ask
from controller.simulators.cluster.status import ApiError

ANY = "*"


@dataclass(frozen=True, slots=True)
class Rule:
    """Verbs on resources (`pods`, `pods/log`) of one namespace; an empty one is the whole cluster."""

    verbs: Sequence[str]
    resources: Sequence[str]
    namespace: str = ""

    def allows(self, verb: str, resource: str, namespace: str) -> bool:
        """Whether this rule is enough."""
        return (
            self.namespace in ("", namespace)
            and (ANY in self.verbs or verb in self.verbs)
            and (ANY in self.resources or resource in self.resources)
        )


@dataclass(frozen=True, slots=True)
class Account:
    """Someone with a token."""

    name: str
    rules: Sequence[Rule] = (Rule((ANY,), (ANY,)),)

    def may(self, verb: str, resource: str, namespace: str) -> bool:
        """Whether one of the rules allows it."""
        return any(rule.allows(verb, resource, namespace) for rule in self.rules)

    def check(self, ask: Ask) -> None:
        """Raise 403 unless the request is allowed."""
        resource = ask.resource.plural
        full = f"{resource}/{ask.subresource}" if ask.subresource else resource
        if not self.may(ask.verb, full, ask.place):
            raise _forbidden(self.name, ask, full)


def _forbidden(user: str, ask: Ask, resource: str) -> ApiError:
    what = f'{ask.resource.plural} "{ask.name}"' if ask.name else ask.resource.plural
    where = f'in the namespace "{ask.namespace}"' if ask.namespace else "at the cluster scope"
    message = (
        f'{what} is forbidden: User "{user}" cannot {ask.verb} resource "{resource}" in API group "" {where}'
    )
    details = {"kind": ask.resource.plural, **({"name": ask.name} if ask.name else {})}
    return ApiError(403, "Forbidden", message, details)
