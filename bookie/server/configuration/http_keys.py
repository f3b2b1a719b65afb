"""The keys of the HTTP port. Pure data, a part of `keys`."""

from bookie.server.configuration.key import Group, Key
from bookie.storage.settings import MIB

__all__ = ["HTTP"]

HTTP = Group(
    "HTTP port",
    (
        Key("httpServerEnabled", "http.enabled", bool, "false", "Serve the console, upstream's admin endpoints, metrics"
            " and probes: docs/http.md. Who may do what there is the admin plane's `adminTokensFile` and so on."),
        Key("httpServerPort", "http.port", int, "8080", "Its port; 0 lets the system choose.", high=65535),
        Key("httpServerHost", "http.host", str, "127.0.0.1", "Its address. Another one than loopback needs"
            " `adminTokensFile` or `adminTlsClientCaPath`, or `adminInsecureAllowed`.", differs="every address"),
        Key("httpServerAllowedHosts", "http.allowed_hosts", str, "", "Names under which clients may ask for this port,"
            " besides localhost, addresses, this machine's host name, `advertisedAddress` and the name in the bookie's"
            " id: separated by commas, `*.example` for all below it. Others are refused (421)."),
        Key("httpServerTlsEnable", "http.tls", bool, "false", "Serve HTTPS and nothing else, with the certificate of"
            " `adminTlsCertificatePath`."),
        Key("httpServerThreads", "http.threads", int, "8", "Requests that may wait for disks, stores and other bookies"
            " at a time.", low=2, high=64),
        Key("httpServerRequestTimeoutMs", "http.request_timeout_ms", int, "30000", "A request that takes longer is"
            " given up (504).", low=100, high=3_600_000, unit="ms"),
        Key("httpServerMaxConnections", "http.connections_max", int, "256", "Connections at a time; the one that has"
            " asked for nothing for longest gives way to the next.", low=160, high=100_000),
        Key("httpServerMaxConnectionsPerAddress", "http.connections_per_address_max", int, "192", "The same from one IP"
            " address.", low=160, high=100_000),
        Key("httpServerReceiveTimeoutMs", "http.receive_timeout_ms", int, "10000", "A connection has so long for its"
            " first byte, then for the handshake of TLS; and each request, head and body, from its own first byte.",
            low=100, high=600_000, unit="ms"),
        Key("httpServerSendTimeoutMs", "http.send_timeout_ms", int, "10000", "A peer that has not taken its answer"
            " within this, and a second more for each 64 KiB, is closed.", low=100, high=600_000, unit="ms"),
        Key("httpServerMaxOutputMemorySizeMb", "http.output_bytes_max", int, "64", "Memory of answers that wait for"
            " their peers; beyond it whoever takes his for longest is closed.", low=1, high=65536, unit="MiB",
            scale=MIB),
        Key("sanityCheckMetricsEnabled", "http.self_test", bool, "false", "Write and read a few entries each minute,"
            " for the metric `bookie_SERVER_SANITY`; else it tells of tests that were asked for."),
    ),
)  # fmt: skip
