"""TLS of the data port: contexts that are made from files, and remade when the files change.

`files` reads keys and certificates, from PEM and PKCS12. `ciphers` translates names of cipher suites from Java's
spelling to OpenSSL's. `contexts` combines them and watches the files. Only a bookie with TLS imports this package,
because loading OpenSSL slows every start.

Begin with `contexts`.

Leans on: server.configuration, server.process, bookie.secret_files, bookie.changed_files.
"""
