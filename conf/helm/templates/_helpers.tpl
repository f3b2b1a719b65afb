{{- define "bookie.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* The environment of a bookie: each BK_key overrides a key of conf/container.conf. */}}
{{- define "bookie.environment" -}}
- name: POD_NAME
  valueFrom:
    fieldRef: {fieldPath: metadata.name}
{{- $config := dict
    "advertisedAddress" (printf "$(POD_NAME).%s" .Release.Name)
    "metadataServiceUri" .Values.metadata.uri
    "journalDirectories" "/journal"
    "ledgerDirectories" "/ledgers"
    "autoRecoveryDaemonEnabled" .Values.autoRecovery
    "httpServerHost" "0.0.0.0"
    "adminTokensFile" "/etc/bookie-tokens/tokens" }}
{{- if .Values.tls.secret }}
{{- $config = merge $config (dict
    "tlsProviderFactoryClass" "org.apache.bookkeeper.tls.TLSContextFactory"
    "tlsKeyStore" "/etc/bookie-tls/tls.key"
    "tlsCertificatePath" "/etc/bookie-tls/tls.crt"
    "tlsTrustStore" "/etc/bookie-tls/ca.crt"
    "tlsRequired" .Values.tls.required
    "tlsClientAuthentication" .Values.tls.clientAuthentication
    "clientTrustStore" "/etc/bookie-tls/ca.crt"
    "clientKeyStore" "/etc/bookie-tls/tls.key"
    "adminTlsCertificatePath" "/etc/bookie-tls/tls.crt"
    "adminTlsKeyPath" "/etc/bookie-tls/tls.key"
    "httpServerTlsEnable" true) }}
{{- end }}
{{- range $key, $value := merge (deepCopy .Values.config) $config }}
- name: BK_{{ $key }}
  {{- /* Whole numbers arrive as floating-point ones, of which large ones would be written as 9e+05. */}}
  {{- if and (kindIs "float64" $value) (eq (floor $value) $value) }}
  {{- $value = int64 $value }}
  {{- end }}
  value: {{ $value | toString | quote }}
{{- end }}
- name: BOOKIE_METADATA_URI
  value: {{ .Values.metadata.uri | quote }}
{{- end }}

{{- define "bookie.probe" -}}
{path: {{ .path }}, port: http, scheme: {{ if .root.Values.tls.secret }}HTTPS{{ else }}HTTP{{ end }}}
{{- end }}

{{- define "bookie.claim" -}}
accessModes: [ReadWriteOnce]
{{- with .class }}
storageClassName: {{ . }}
{{- end }}
resources: {requests: {storage: {{ .size }}}}
{{- end }}
