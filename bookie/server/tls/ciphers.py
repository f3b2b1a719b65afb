"""Names of cipher suites: as Java and the standards spell them, and as OpenSSL does. Pure."""

import re

__all__ = ["split"]

DEFAULT_OLDER = "ECDHE+AESGCM:ECDHE+CHACHA20"
DEFAULT_NEWER = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
"""AES-128 first: as good as the others for decades to come, and the fastest where bulk data flows."""
NEWER = re.compile(r"TLS_(AES_\d+|CHACHA20)_[A-Z0-9_]+")
OLDER = re.compile(r"TLS_(\w+?)_WITH_(\w+)")


def split(suites: str) -> tuple[str, str]:
    """OpenSSL's lists for TLSv1.2 and for TLSv1.3, from names of either spelling; our default for an empty one."""
    names = [name.strip() for name in re.split("[,:]", suites) if name.strip()]
    newer = [name for name in names if NEWER.fullmatch(name)]
    older = [_openssl_name(name) for name in names if name not in newer]
    return ":".join(older) or DEFAULT_OLDER, ":".join(newer) or DEFAULT_NEWER


def _openssl_name(name: str) -> str:
    """`TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256` is `ECDHE-RSA-AES128-GCM-SHA256`; other names stay."""
    standard = OLDER.fullmatch(name)
    if not standard:
        return name
    exchange, cipher = standard.groups()
    cipher = re.sub(r"AES_(\d+)", r"AES\1", cipher).replace("_CBC", "")
    cipher = cipher.replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    parts = cipher if exchange == "RSA" else f"{exchange}_{cipher}"
    return parts.replace("_", "-")
