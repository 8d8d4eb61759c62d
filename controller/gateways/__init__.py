"""How the outside is spoken to. Gateways do not know each other."""
