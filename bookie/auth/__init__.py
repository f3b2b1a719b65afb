"""Who is at the other end of a connection: providers for the bookie and for clients.

provider      what a provider is, on either side
registry      providers by name: built in, by Apache BookKeeper's class names, installed ones
settings      what the bookie is told about authentication
reread        a file, read again when it has changed
token         a shared secret
token_file    where it stands, whose it is and what it is good for
certificate   the role in a TLS client certificate
sasl          SASL DIGEST-MD5 as Java's provider speaks it
digest_md5    the mechanism itself
jaas          the file in which Java keeps users
"""
