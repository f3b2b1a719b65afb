"""Authentication: providers for the bookie and for clients.

provider      the interface of a provider, on either side
registry      providers by name: built in, by Apache BookKeeper's class names, or installed
settings      settings of authentication for bookies and clients
reread        a file that is read again when it has changed
token         a shared secret
token_file    the file with the tokens, their names and their rights
certificate   the role in a TLS client certificate
sasl          SASL DIGEST-MD5, compatible with Java's provider
digest_md5    the mechanism itself
jaas          the file in which Java keeps users
"""
