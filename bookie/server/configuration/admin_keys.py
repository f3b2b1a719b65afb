"""The keys of the admin plane: its address, its limits and access control. Pure data, a part of `keys`."""

from bookie.server.configuration.key import Group, Key

__all__ = ["ADMIN"]

ADMIN = Group(
    "Admin plane",
    (
        Key("adminPort", "server.admin_port", int, "3182", "Port of the admin service (gRPC); -1 turns it off, 0 lets"
            " the system choose a port.", low=-1, high=65535),
        Key("adminHost", "server.admin_host", str, "127.0.0.1", "Address of the admin service. Any other address than"
            " loopback needs `adminTokensFile`, `adminTlsClientCaPath` or `adminInsecureAllowed`."),
        Key("adminMaxConnections", "admin.connections_max", int, "1000", "Maximum number of connections to the admin"
            " service. At the limit, a connection that has sent nothing yet is closed for a new one; if all have sent"
            " something, the new one is closed.", low=16, high=100_000),
        Key("adminMaxConnectionsPerAddress", "admin.connections_per_address_max", int, "750", "The same for one IP"
            " address. All bookies and clients of one machine share one address.", low=16, high=100_000),
        Key("adminHandshakeTimeoutMs", "admin.handshake_timeout_ms", int, "10000", "Time that a connection has for its"
            " first byte, and again for its handshakes (TLS, HTTP/2).", low=100, high=600_000, unit="ms"),
        Key("adminIdleTimeoutMs", "admin.idle_timeout_ms", int, "300000", "A connection without a call is closed after"
            " this time; gRPC clients open another one by themselves.", low=1000, high=86_400_000, unit="ms"),
        Key("adminSendTimeoutMs", "admin.send_timeout_ms", int, "30000", "A client that has not read 64 KiB of its"
            " answers within this time is disconnected.", low=100, high=600_000, unit="ms"),
        Key("adminInsecureAllowed", "access.insecure_allowed", bool, "false", "Everybody who reaches the admin ports"
            " may do everything, even on other addresses than loopback. This is for closed networks, and has an effect"
            " only if neither `adminTokensFile` nor `adminTlsClientCaPath` is set."),
        Key("adminTokensFile", "access.tokens_file", str, "", "File with one bearer token per line, `role:token` or"
            " `role:name:token`. The roles are `metrics`, `read`, `read-data`, `operate` and `admin`; each permits"
            " what those before it permit. The file must be private: mode 600, or 440 if it belongs to another user"
            " and our group reads it. It is read again when it changes. The bookie's own token is valid in addition:"
            " docs/admin.md."),
        Key("adminTlsCertificatePath", "access.tls_certificate", str, "", "Certificate of the admin ports (PEM, with"
            " those between it and the root). If it is set, they use only TLS. It is read again when it changes."),
        Key("adminTlsKeyPath", "access.tls_key", str, "", "Private key of that certificate (PEM, without a"
            " password)."),
        Key("adminTlsClientCaPath", "access.tls_client_ca", str, "", "Certificates (PEM) of the authorities that issue"
            " certificates to clients. If it is set, clients without such a certificate are refused."),
        Key("adminTlsSubjects", "access.tls_subjects", str, "", "Roles of such clients: `role:name` separated by"
            " commas, by the common name or an alternative name of the certificate; `role:*` means every"
            " certificate."),
        Key("metadataSessionsMax", "access.sessions_max", int, "1024", "Maximum number of sessions of other processes"
            " with the embedded metadata store. Each connected bookie, client and `bkadmin` has one. More are"
            " refused.", low=1, high=100_000),
        Key("metadataSessionsPerPeerMax", "access.sessions_per_peer_max", int, "256", "The same for one address.",
            low=1, high=100_000),
    ),
)  # fmt: skip
