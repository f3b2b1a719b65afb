"""Names of cipher suites, in the spelling of Java and the standards, and in OpenSSL's. Pure functions."""

import re

__all__ = ["split"]

DEFAULT_OLDER = "ECDHE+AESGCM:ECDHE+CHACHA20"
DEFAULT_NEWER = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
"""AES-128 comes first: it is as secure as the others for decades to come, and the fastest for bulk data."""
NEWER = re.compile(r"TLS_(AES_\d+|CHACHA20)_[A-Z0-9_]+")
OLDER = re.compile(r"TLS_(\w+?)_WITH_(\w+)")


def split(suites: str) -> tuple[str, str]:
    """Return OpenSSL's lists for TLSv1.2 and TLSv1.3, from names in either spelling; by default our own lists."""
    names = [name.strip() for name in re.split("[,:]", suites) if name.strip()]
    newer = [name for name in names if NEWER.fullmatch(name)]
    older = [_openssl_name(name) for name in names if name not in newer]
    return ":".join(older) or DEFAULT_OLDER, ":".join(newer) or DEFAULT_NEWER


def _openssl_name(name: str) -> str:
    """Translate `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256` to `ECDHE-RSA-AES128-GCM-SHA256`; keep other names."""
    standard = OLDER.fullmatch(name)
    if not standard:
        return name
    exchange, cipher = standard.groups()
    cipher = re.sub(r"AES_(\d+)", r"AES\1", cipher).replace("_CBC", "")
    cipher = cipher.replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    parts = cipher if exchange == "RSA" else f"{exchange}_{cipher}"
    return parts.replace("_", "-")
