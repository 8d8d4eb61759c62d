"""The certificates, keys and tokens of one cluster, made anew for each and written into its folder."""

import ipaddress
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFE = timedelta(days=7)
ADMIN = "switchboard-admin"


@dataclass(frozen=True, slots=True)
class Credentials:
    """Where everything lies; `tokens` are by user name."""

    folder: Path
    tokens: dict[str, str]

    @property
    def authority(self) -> Path:
        """The certificate that all others are signed by."""
        return self.folder / "ca.crt"

    def pair(self, name: str) -> tuple[Path, Path]:
        """A certificate and its key."""
        return self.folder / f"{name}.crt", self.folder / f"{name}.key"

    def kubeconfig(self, user: str, server: str) -> Path:
        """A kubeconfig file for one user."""
        file = self.folder / f"{user.replace(':', '-')}.kubeconfig"
        file.write_text(kubeconfig(server, self.authority, self.tokens[user]), encoding="utf-8")
        return file


def kubeconfig(server: str, authority: Path, token: str, namespace: str = "default") -> str:
    """A kubeconfig with one context."""
    context = {"cluster": "switchboard", "user": "switchboard", "namespace": namespace}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "switchboard", "cluster": {"server": server, "certificate-authority": str(authority)}}
        ],
        "users": [{"name": "switchboard", "user": {"token": token}}],
        "contexts": [{"name": "switchboard", "context": context}],
        "current-context": "switchboard",
    }
    return yaml.safe_dump(content, sort_keys=False)


def make_credentials(folder: Path, nodes: list[str]) -> Credentials:
    """Make everything that a control plane and these nodes need."""
    folder.mkdir(mode=0o700)
    key = ec.generate_private_key(ec.SECP256R1())
    authority = _certificate("switchboard-ca", key.public_key(), "switchboard-ca", key, ca=True)
    _write(folder / "ca.crt", authority.public_bytes(serialization.Encoding.PEM))
    for name, organization in (("apiserver", ""), ("kubelet-client", "system:masters")):
        own = ec.generate_private_key(ec.SECP256R1())
        issued = _certificate(name, own.public_key(), "switchboard-ca", key, organization=organization)
        _write(folder / f"{name}.crt", issued.public_bytes(serialization.Encoding.PEM))
        _write(folder / f"{name}.key", _pem(own))
    _write(folder / "service-accounts.key", _pem(rsa.generate_private_key(65537, 2048)))
    groups = {ADMIN: "system:masters", **{f"system:node:{name}": "system:nodes" for name in nodes}}
    tokens = {user: secrets.token_hex(16) for user in groups}
    lines = [f'{tokens[user]},{user},{user},"{group}"\n' for user, group in groups.items()]
    _write(folder / "tokens.csv", "".join(lines).encode())
    return Credentials(folder, tokens)


def _certificate(
    name: str,
    public_key: ec.EllipticCurvePublicKey,
    issuer: str,
    issuer_key: ec.EllipticCurvePrivateKey,
    *,
    organization: str = "",
    ca: bool = False,
) -> x509.Certificate:
    now = datetime.now(UTC)
    subject = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
    if organization:
        subject.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name(subject))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + LIFE)
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False
        )
        .add_extension(_usage(signs=ca), critical=True)
    )
    if not ca:
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        uses = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        builder = builder.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def _write(file: Path, content: bytes) -> None:
    file.touch(mode=0o600)
    file.write_bytes(content)
