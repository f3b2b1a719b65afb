# One bookie in a container:
#   docker build -t bookie .
#   docker run -e BK_advertisedAddress=10.0.0.5 -e BK_metadataServiceUri=zk+hierarchical://zk1:2181/ledgers \
#       -p 3181:3181 -v bookie-data:/data bookie
# Every key of conf/container.conf can be overridden by BK_KEY.

FROM python:3.12-slim AS build
# the base image decides the versions
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN python -m venv /opt/bookie && /opt/bookie/bin/pip install --no-cache-dir . \
    && /opt/bookie/bin/python -m compileall -q /opt/bookie/lib

FROM python:3.12-slim
COPY --from=build /opt/bookie /opt/bookie
COPY conf/container.conf /etc/bookie/bk.conf
ENV PATH=/opt/bookie/bin:$PATH BOOKIE_CONF=/etc/bookie/bk.conf
RUN useradd --system --uid 10001 bookie && install -d -m 0700 -o bookie /data
# by number, so that an orchestrator sees that it is not root
USER 10001
VOLUME /data
EXPOSE 3181 3182 8080
STOPSIGNAL SIGTERM
# exec form, so that signals reach the bookie, which flushes before it ends
ENTRYPOINT ["bookie-server"]
