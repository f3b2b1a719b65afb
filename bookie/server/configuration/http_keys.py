"""The keys of the HTTP port. Pure data, a part of `keys`."""

from bookie.server.configuration.key import Group, Key
from bookie.storage.settings import MIB

__all__ = ["HTTP"]

HTTP = Group(
    "HTTP port",
    (
        Key("httpServerEnabled", "http.enabled", bool, "false", "Serve the console, Apache BookKeeper's admin"
            " endpoints, metrics and probes: docs/http.md. The keys of the admin plane, such as `adminTokensFile`,"
            " control access."),
        Key("httpServerPort", "http.port", int, "8080", "Port of the HTTP server; 0 lets the system choose a port.",
            high=65535),
        Key("httpServerHost", "http.host", str, "127.0.0.1", "Address of the HTTP server. Any other address than"
            " loopback needs `adminTokensFile`, `adminTlsClientCaPath` or `adminInsecureAllowed`.",
            differs="every address"),
        Key("httpServerAllowedHosts", "http.allowed_hosts", str, "", "Host names that clients may use for this port,"
            " in addition to localhost, IP addresses, this machine's host name, `advertisedAddress` and the name in"
            " the bookie's id: separated by commas, `*.example` for all names below it. Requests under other names are"
            " refused (421)."),
        Key("httpServerTlsEnable", "http.tls", bool, "false", "Serve only HTTPS, with the certificate of"
            " `adminTlsCertificatePath`."),
        Key("httpServerThreads", "http.threads", int, "8", "Maximum number of requests that wait for disks, stores and"
            " other bookies at a time. A quarter is kept for requests that do not need the metadata store.",
            low=2, high=64),
        Key("httpServerRequestTimeoutMs", "http.request_timeout_ms", int, "30000", "A request that takes longer is"
            " answered with 504.", low=100, high=3_600_000, unit="ms"),
        Key("httpServerMaxConnections", "http.connections_max", int, "256", "Maximum number of connections; at the"
            " limit, the connection that has been idle longest is closed for a new one.", low=160, high=100_000),
        Key("httpServerMaxConnectionsPerAddress", "http.connections_per_address_max", int, "192", "The same for one IP"
            " address.", low=160, high=100_000),
        Key("httpServerReceiveTimeoutMs", "http.receive_timeout_ms", int, "10000", "Time that a connection has for its"
            " first byte, again for the TLS handshake, and for each request with head and body from its first byte.",
            low=100, high=600_000, unit="ms"),
        Key("httpServerSendTimeoutMs", "http.send_timeout_ms", int, "10000", "A client that has not read its answer"
            " within this time, plus a second for each 64 KiB, is disconnected.", low=100, high=600_000, unit="ms"),
        Key("httpServerMaxOutputMemorySizeMb", "http.output_bytes_max", int, "64", "Memory for unsent answers; beyond"
            " it, the client that has been reading its answer for longest is disconnected.", low=1, high=65536,
            unit="MiB", scale=MIB),
        Key("sanityCheckMetricsEnabled", "http.self_test", bool, "false", "Write and read a few entries each minute,"
            " for the metric `bookie_SERVER_SANITY`; otherwise the metric shows the last test that was requested."),
    ),
)  # fmt: skip
