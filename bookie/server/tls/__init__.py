"""TLS of the data port: contexts made from files, and made anew when the files change.

`files` reads keys and certificates, from PEM and PKCS12. `ciphers` translates names of cipher suites from Java's
spelling to OpenSSL's. `contexts` puts them together and follows changes of the files. Only a bookie with TLS imports
this package, since loading OpenSSL slows every start.

Begin with `contexts`.

Leans on: server.configuration, server.process, bookie.secret_files, bookie.changed_files.
"""
