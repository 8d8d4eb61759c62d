{{- define "switchboard.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{- /* The prefix of object names; short enough for every suffix that is put behind it. */}}
{{- define "switchboard.fullname" -}}
{{- $name := include "switchboard.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- /* Of what lies in no namespace. A namespace holds no dot, so no two releases get the same one. */}}
{{- define "switchboard.wideName" -}}
{{ .Release.Namespace }}.{{ include "switchboard.fullname" . }}
{{- end }}

{{- define "switchboard.selector" -}}
app.kubernetes.io/name: {{ include "switchboard.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "switchboard.labels" -}}
{{ include "switchboard.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* The same with more labels, which win: (list context labels). */}}
{{- define "switchboard.labelled" -}}
{{- merge (deepCopy (index . 1 | default dict)) (include "switchboard.labels" (index . 0) | fromYaml) | toYaml -}}
{{- end }}

{{- /* Of pods: nothing that changes with every version, so that an upgrade restarts only what it changes. */}}
{{- define "switchboard.podLabels" -}}
{{- merge (include "switchboard.selector" . | fromYaml) (.Values.commonLabels | default dict) | toYaml -}}
{{- end }}

{{- define "switchboard.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- define "switchboard.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "switchboard.fullname" .) }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end -}}
{{- end }}

{{- define "switchboard.secret" -}}
{{ .Values.secrets.existingSecret | default (include "switchboard.fullname" .) }}
{{- end }}

{{- define "switchboard.keys" -}}
{{ .Values.appKeys.existingSecret | default (printf "%s-app-keys" (include "switchboard.fullname" .)) }}
{{- end }}

{{- /* What the settings file says, or its own default where it says nothing. */}}
{{- define "switchboard.runnerNamespace" -}}
{{ dig "kubernetes" "namespace" "default" .Values.config }}
{{- end }}
{{- define "switchboard.boardLabel" -}}
{{ dig "kubernetes" "boardLabel" "riseproject.dev/board" .Values.config }}
{{- end }}
{{- define "switchboard.port" -}}
{{ dig "web" "listen" "0.0.0.0:8080" .Values.config | splitList ":" | last }}
{{- end }}
{{- /* "true" or nothing. */}}
{{- define "switchboard.advertises" -}}
{{- if dig "boards" "advertise" false .Values.config }}true{{ end -}}
{{- end }}
{{- /* Whether deliveries are pushed to us, so that a receiver is needed. */}}
{{- define "switchboard.receives" -}}
{{- if ne (dig "webhook" "push" .Values.config) "pull" }}true{{ end -}}
{{- end }}
{{- /* Whether the receiver has a Deployment of its own. */}}
{{- define "switchboard.split" -}}
{{- if and (eq .Values.mode "split") (include "switchboard.receives" .) }}true{{ end -}}
{{- end }}
{{- /* Which pods take deliveries. */}}
{{- define "switchboard.receiver" -}}
{{- if include "switchboard.split" . }}webhook{{ else }}controller{{ end -}}
{{- end }}

{{- define "switchboard.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "switchboard.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "switchboard.checksums" -}}
checksum/config: {{ toYaml .Values.config | sha256sum }}
{{- if not .Values.secrets.existingSecret }}
checksum/secret: {{ include "switchboard.secretData" . | sha256sum }}
{{- end }}
{{- end }}

{{- define "switchboard.databaseUrl" -}}
{{- if .Values.trialDatabase.enabled -}}
postgresql://switchboard:{{ .Values.trialDatabase.password }}@{{ include "switchboard.fullname" . }}-postgresql:5432/switchboard
{{- else -}}
{{ .Values.secrets.databaseUrl }}
{{- end -}}
{{- end }}

{{- define "switchboard.secretData" -}}
DATABASE_URL: {{ include "switchboard.databaseUrl" . | quote }}
{{- with .Values.secrets.webhookSecret }}
GITHUB_WEBHOOK_SECRET: {{ . | quote }}
{{- end }}
{{- with .Values.secrets.adminToken }}
SWITCHBOARD_ADMIN_TOKEN: {{ . | quote }}
{{- end }}
{{- end }}

{{- /* One variable of the Secret: (list context name optional). */}}
{{- define "switchboard.fromSecret" -}}
- name: {{ index . 1 }}
  valueFrom:
    secretKeyRef:
      name: {{ include "switchboard.secret" (index . 0) }}
      key: {{ index . 1 }}
      {{- if index . 2 }}
      optional: true
      {{- end }}
{{- end }}

{{- define "switchboard.env" -}}
- name: SWITCHBOARD_CONFIG
  value: /etc/switchboard/config/switchboard.yaml
- name: SWITCHBOARD_RELEASE
  value: {{ .Release.Namespace }}/{{ .Release.Name }}
{{ include "switchboard.fromSecret" (list . "DATABASE_URL" false) }}
{{- end }}

{{- define "switchboard.mounts" -}}
- {name: config, mountPath: /etc/switchboard/config, readOnly: true}
- {name: tmp, mountPath: /tmp}
{{- end }}

{{- define "switchboard.volumes" -}}
- name: config
  configMap:
    name: {{ include "switchboard.fullname" . }}
- name: tmp
  emptyDir: {sizeLimit: 64Mi}
{{- end }}

{{- define "switchboard.keysVolume" -}}
- name: keys
  secret:
    secretName: {{ include "switchboard.keys" . }}
    defaultMode: 0440
{{- end }}
{{- define "switchboard.keysMount" -}}
- {name: keys, mountPath: /etc/switchboard/keys, readOnly: true}
{{- end }}

{{- /* It reaches the database as its component does, with the same variables and certificates: (list context values). */}}
{{- define "switchboard.migrate" -}}
{{- $context := index . 0 -}}
{{- with index . 1 -}}
- name: migrate
  image: {{ include "switchboard.image" $context }}
  imagePullPolicy: {{ $context.Values.image.pullPolicy }}
  args: [migrate, --wait, --log-format, json]
  env:
    {{- include "switchboard.env" $context | nindent 4 }}
    {{- with .extraEnv }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  volumeMounts:
    {{- include "switchboard.mounts" $context | nindent 4 }}
    {{- with .extraVolumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  resources:
    {{- toYaml .resources | nindent 4 }}
  securityContext:
    {{- include "switchboard.containerSecurity" $context | nindent 4 }}
{{- end -}}
{{- end }}

{{- define "switchboard.probes" -}}
startupProbe:
  httpGet: {path: /health, port: http}
  periodSeconds: 2
  failureThreshold: 150
livenessProbe:
  httpGet: {path: /health, port: http}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /ready, port: http}
  periodSeconds: 5
  timeoutSeconds: 5
{{- end }}

{{- /* The affinity that was given, with every way onto a node closed to boards: (list context affinity). */}}
{{- define "switchboard.affinity" -}}
{{- $context := index . 0 -}}
{{- $affinity := deepCopy (index . 1 | default dict) -}}
{{- if $context.Values.keepOffBoards -}}
{{- $off := dict "key" (include "switchboard.boardLabel" $context) "operator" "DoesNotExist" -}}
{{- $required := "requiredDuringSchedulingIgnoredDuringExecution" -}}
{{- $terms := list -}}
{{- range dig "nodeAffinity" $required "nodeSelectorTerms" (list dict) $affinity -}}
{{- $terms = append $terms (merge (dict "matchExpressions" (append (.matchExpressions | default list) $off)) .) -}}
{{- end -}}
{{- $node := merge (dict $required (dict "nodeSelectorTerms" $terms)) (dig "nodeAffinity" dict $affinity) -}}
{{- $affinity = merge (dict "nodeAffinity" $node) $affinity -}}
{{- end -}}
{{- with $affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end -}}
{{- end }}

{{- /* Where a component's pods may go: (list context values). */}}
{{- define "switchboard.placement" -}}
{{- $context := index . 0 -}}
{{- with index . 1 -}}
{{- include "switchboard.affinity" (list $context .affinity) }}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}
{{- end }}

{{- define "switchboard.pullSecrets" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{- /* Egress to DNS (5353 is where OpenShift's pods listen) and to the ports that the program needs. */}}
{{- define "switchboard.egress" -}}
- ports:
    {{- range list 53 5353 }}
    - {protocol: UDP, port: {{ . }}}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
- ports:
    {{- range .Values.networkPolicy.egressPorts }}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
{{- with .Values.networkPolicy.extraEgress }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* What the schema cannot say: mistakes between values, all at once, each with what to do. */}}
{{- define "switchboard.check" -}}
{{- $wrong := list -}}
{{- if not .Values.secrets.existingSecret -}}
{{- if and (not .Values.secrets.databaseUrl) (not .Values.trialDatabase.enabled) -}}
{{- $wrong = append $wrong "secrets: no database. Give --set secrets.databaseUrl=postgresql://user:password@host/database, or name a Secret with --set secrets.existingSecret=NAME, or --set trialDatabase.enabled=true to try things out" -}}
{{- end -}}
{{- if and (include "switchboard.receives" .) (not .Values.secrets.webhookSecret) -}}
{{- $wrong = append $wrong "secrets: no webhook secret. Give --set secrets.webhookSecret=\"$(openssl rand -hex 32)\" and enter the same one in the GitHub App, or name a Secret with --set secrets.existingSecret=NAME" -}}
{{- end -}}
{{- end -}}
{{- if and .Values.trialDatabase.enabled .Values.secrets.existingSecret -}}
{{- $wrong = append $wrong "trialDatabase: secrets.existingSecret says where the database is already. Switch one of them off" -}}
{{- end -}}
{{- if and .Values.trialDatabase.enabled (not .Values.trialDatabase.password) -}}
{{- $wrong = append $wrong "trialDatabase.password: missing. Give --set trialDatabase.password=\"$(openssl rand -hex 16)\", and the same one at every upgrade" -}}
{{- end -}}
{{- if and (not .Values.appKeys.existingSecret) (not .Values.appKeys.files) -}}
{{- $wrong = append $wrong "appKeys: no private key of the App. Give --set-file appKeys.files.organization\\.pem=KEY.pem, or name a Secret with --set appKeys.existingSecret=NAME" -}}
{{- end -}}
{{- range $kind, $app := dig "github" "apps" dict .Values.config -}}
{{- $keys := $.Values.appKeys -}}
{{- $file := $app.privateKeyFile -}}
{{- if hasPrefix "/etc/switchboard/keys/" $file -}}
{{- if and $keys.files (not $keys.existingSecret) (not (hasKey $keys.files (base $file))) -}}
{{- $wrong = append $wrong (printf "config.github.apps.%s.privateKeyFile: appKeys.files has no %s; it is mounted under /etc/switchboard/keys/" $kind (base $file)) -}}
{{- end -}}
{{- else if not $.Values.controller.extraVolumeMounts -}}
{{- $wrong = append $wrong (printf "config.github.apps.%s.privateKeyFile: nothing is mounted at %s; the files of appKeys are under /etc/switchboard/keys/" $kind $file) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) -}}
{{- $wrong = append $wrong "ingress.host: missing. Give --set ingress.host=switchboard.example.org" -}}
{{- end -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.pages) (not (include "switchboard.receives" .)) -}}
{{- $wrong = append $wrong "ingress.enabled: with config.webhook pull GitHub sends nothing here, so only pages could be published. Give --set ingress.enabled=false, or --set ingress.pages=true" -}}
{{- end -}}
{{- if and .Values.networkPolicy.enabled .Values.networkPolicy.pagesFrom (eq .Values.mode "all") (include "switchboard.receives" .) -}}
{{- $wrong = append $wrong "networkPolicy.pagesFrom: with mode all the receiver shares the port of the pages, and GitHub would be shut out. Give --set mode=split, or take pagesFrom out" -}}
{{- end -}}
{{- if and .Values.rbac.create (not .Values.serviceAccount.create) (not .Values.serviceAccount.name) -}}
{{- $wrong = append $wrong "serviceAccount.name: missing; the rights would go to the namespace's default account, so to every pod there. Give --set serviceAccount.name=NAME, or --set serviceAccount.create=true" -}}
{{- end -}}
{{- if and .Values.runnerNamespace.create (eq (include "switchboard.runnerNamespace" .) .Release.Namespace) -}}
{{- $wrong = append $wrong "runnerNamespace.create: runner pods go into the release's own namespace, which is there already. Give --set runnerNamespace.create=false, or another config.kubernetes.namespace" -}}
{{- end -}}
{{- if $wrong -}}
{{- fail (printf "\n\nThe values are wrong:\n  %s\n" (join "\n  " $wrong)) -}}
{{- end -}}
{{- end }}
