"""A throwaway certificate authority and the certificates a client must refuse."""

import os
import ssl
import subprocess


def _openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


class Certificates:
    """Made in a directory the caller owns; only the authority is for others."""

    def __init__(self, directory):
        self.dir = directory
        self.ca_file = self.path("ca.pem")
        self.other_ca_file = self.path("other-ca.pem")
        # The server under test may run as another user and must read ca.pem.
        os.chmod(directory, 0o755)
        _openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout",
                 "-out", self.path("leaf.key"))
        for name in ("ca", "other-ca"):
            self._authority(name)
        good = "DNS:localhost,IP:127.0.0.1"
        self._leaf("good", "ca", good)
        self._leaf("wrong-name", "ca", "DNS:elsewhere.invalid")
        self._leaf("expired", "ca", good, start="20200101000000Z", end="20200102000000Z")
        self._leaf("untrusted", "other-ca", good)
        self._leaf("client", "ca", "DNS:client.invalid", usage="clientAuth")
        os.chmod(self.ca_file, 0o644)

    def path(self, name):
        return os.path.join(self.dir, name)

    def _authority(self, name):
        config = self.path(name + ".cnf")
        with open(config, "w") as out:
            out.write("[req]\ndistinguished_name=dn\nprompt=no\n"
                      "x509_extensions=v3\n[dn]\nCN=hostile provider %s\n"
                      "[v3]\nbasicConstraints=critical,CA:TRUE\n"
                      "keyUsage=critical,keyCertSign,cRLSign\n"
                      "subjectKeyIdentifier=hash\n" % name)
        _openssl("req", "-x509", "-config", config, "-newkey", "ec",
                 "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                 "-keyout", self.path(name + ".key"), "-days", "2",
                 "-out", self.path(name + ".pem"))

    def _leaf(self, name, authority, names, start=None, end=None, usage="serverAuth"):
        """"openssl ca" is the one command that takes dates in every version."""
        config = self.path(name + ".cnf")
        with open(config, "w") as out:
            out.write("[req]\ndistinguished_name=dn\nprompt=no\n[dn]\nCN=%s\n"
                      "[ca]\ndefault_ca=authority\n[authority]\ndatabase=%s\n"
                      "new_certs_dir=%s\ndefault_md=sha256\nrand_serial=yes\n"
                      "default_days=2\nunique_subject=no\npolicy=names\n"
                      "[names]\ncommonName=supplied\n"
                      "[v3]\nbasicConstraints=critical,CA:FALSE\n"
                      "keyUsage=critical,digitalSignature\n"
                      "extendedKeyUsage=%s\nsubjectAltName=%s\n"
                      "subjectKeyIdentifier=hash\n"
                      "authorityKeyIdentifier=keyid\n" % (name, self.path("index.txt"), self.dir, usage, names))
        with open(self.path("index.txt"), "a"):
            pass
        request = self.path(name + ".csr")
        _openssl("req", "-new", "-config", config, "-key",
                 self.path("leaf.key"), "-out", request)
        dates = ["-startdate", start, "-enddate", end] if start else []
        _openssl("ca", "-batch", "-notext", "-config", config, "-in", request,
                 "-cert", self.path(authority + ".pem"),
                 "-keyfile", self.path(authority + ".key"), *dates,
                 "-extensions", "v3", "-out", self.path(name + ".pem"))

    def context(self, name="good", alpn=("http/1.1",), client_cert=False,
                maximum=None):
        """A server context with the named certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.path(name + ".pem"), self.path("leaf.key"))
        context.set_alpn_protocols(list(alpn))
        if client_cert:
            context.load_verify_locations(self.ca_file)
            context.verify_mode = ssl.CERT_REQUIRED
        if maximum:
            context.maximum_version = maximum
        return context
