"""A certificate authority for tests: PEM files for servers and clients, made with the `cryptography` package."""

import datetime
import ipaddress
import pathlib

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


class Authority:
    """Writes `NAME.pem` (certificate) and `NAME.key` into its folder; its own certificate is `ca.pem`."""

    def __init__(self, folder: pathlib.Path, name: str = "ca"):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.name = folder, x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, f"test {name}")])
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = self.sign(self.name, self.key, x509.BasicConstraints(ca=True, path_length=0))
        self.path = folder / f"{name}.pem"
        self.path.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))

    def sign(self, subject: x509.Name, key, constraints: x509.BasicConstraints, *extensions) -> x509.Certificate:
        now = datetime.datetime.now(datetime.timezone.utc)
        day = datetime.timedelta(days=1)
        builder = (x509.CertificateBuilder().subject_name(subject).issuer_name(self.name).public_key(key.public_key())
                   .serial_number(x509.random_serial_number()).not_valid_before(now - day).not_valid_after(now + day)
                   .add_extension(constraints, critical=True))
        for extension in extensions:
            builder = builder.add_extension(extension, critical=False)
        return builder.sign(self.key, hashes.SHA256())

    def issue(self, name: str) -> tuple[pathlib.Path, pathlib.Path]:
        """A certificate for `localhost`, 127.0.0.1 and 127.0.0.2, and its key; for a server or a client."""
        key = ec.generate_private_key(ec.SECP256R1())
        hosts = [x509.DNSName("localhost"), *(x509.IPAddress(ipaddress.ip_address(f"127.0.0.{n}")) for n in (1, 2))]
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        certificate = self.sign(subject, key, x509.BasicConstraints(ca=False, path_length=None),
                                x509.SubjectAlternativeName(hosts))
        paths = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        paths[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                               serialization.NoEncryption()))
        return paths
