# syntax=docker/dockerfile:1
FROM --platform=$BUILDPLATFORM golang:1.26-bookworm AS build
ARG TARGETOS TARGETARCH VERSION
ENV CGO_ENABLED=0 GOTOOLCHAIN=local
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -ldflags "-s -w -X main.version=$VERSION" -o /umbel ./cmd/umbel \
    && mkdir /data

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /umbel /umbel
COPY --from=build --chown=65532:65532 /data /data
# Loopback is out of reach in a container. Another address needs authentication, or UMBEL_UNAUTHENTICATED=true.
ENV UMBEL_DATA_DIR=/data UMBEL_LISTEN=:5555
USER 65532:65532
VOLUME /data
EXPOSE 5555
HEALTHCHECK --interval=30s --timeout=6s --start-period=30s CMD ["/umbel", "healthcheck"]
ENTRYPOINT ["/umbel"]
CMD ["serve"]
