"""The keys of the admin plane: where it listens, and who may do what there. Pure data, a part of `keys`."""

from bookie.server.configuration.key import Group, Key

__all__ = ["ADMIN"]

ADMIN = Group(
    "Admin plane",
    (
        Key("adminPort", "server.admin_port", int, "3182", "Port of the admin service (gRPC); -1 turns it off, 0"
            " lets the system choose.", low=-1, high=65535),
        Key("adminHost", "server.admin_host", str, "127.0.0.1", "Address of the admin service. Another one than"
            " loopback needs `adminTokensFile` or `adminTlsClientCaPath`, or `adminInsecureAllowed`."),
        Key("adminMaxConnections", "admin.connections_max", int, "1000", "Connections of the admin service at a time;"
            " one that has sent nothing yet gives way to the next, else further ones are closed at once.", low=16,
            high=100_000),
        Key("adminMaxConnectionsPerAddress", "admin.connections_per_address_max", int, "750", "The same from one IP"
            " address. Bookies and clients of one machine share one.", low=16, high=100_000),
        Key("adminHandshakeTimeoutMs", "admin.handshake_timeout_ms", int, "10000", "A connection has so long for its"
            " first byte, and then for its handshakes (TLS, HTTP/2).", low=100, high=600_000, unit="ms"),
        Key("adminIdleTimeoutMs", "admin.idle_timeout_ms", int, "300000", "A connection without a call is closed after"
            " this; clients of gRPC open another one by themselves.", low=1000, high=86_400_000, unit="ms"),
        Key("adminSendTimeoutMs", "admin.send_timeout_ms", int, "30000", "A peer that has not taken 64 KiB of its"
            " answers for so long is closed.", low=100, high=600_000, unit="ms"),
        Key("adminInsecureAllowed", "access.insecure_allowed", bool, "false", "Whoever reaches the admin ports may do"
            " everything, also where they are not loopback: for closed networks. It counts while neither"
            " `adminTokensFile` nor `adminTlsClientCaPath` is set."),
        Key("adminTokensFile", "access.tokens_file", str, "", "A file with a line `role:token` or `role:name:token`"
            " for each bearer token; roles are `metrics`, `read`, `read-data`, `operate` and `admin`, each with what"
            " those before it permit. Nobody else may read it: mode 600, or 440 where it is another user's and our"
            " group reads it. It is read again when it changes. The bookie's own token counts beside it:"
            " docs/admin.md."),
        Key("adminTlsCertificatePath", "access.tls_certificate", str, "", "Certificate of the admin ports (PEM, with"
            " those between it and the root). Set, they speak TLS only. Read again when it changes."),
        Key("adminTlsKeyPath", "access.tls_key", str, "", "The private key of that certificate (PEM, no password)."),
        Key("adminTlsClientCaPath", "access.tls_client_ca", str, "", "Certificates (PEM) that those of clients must"
            " lead to. Set, clients without one are not let in."),
        Key("adminTlsSubjects", "access.tls_subjects", str, "", "What such a client may do: `role:name` separated by"
            " commas, by the common name or an alternative name of its certificate; `role:*` is every one."),
        Key("metadataSessionsMax", "access.sessions_max", int, "1024", "Sessions of other processes with the embedded"
            " metadata store, in all: one of each bookie, client and `bkadmin` that is connected. More are refused.",
            low=1, high=100_000),
        Key("metadataSessionsPerPeerMax", "access.sessions_per_peer_max", int, "256", "The same from one address.",
            low=1, high=100_000),
    ),
)  # fmt: skip
