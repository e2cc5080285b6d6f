{{- define "optcache.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- /* Labels of an object: (list $ "operator"). */ -}}
{{- define "optcache.labels" -}}
{{- $root := index . 0 -}}
{{ include "optcache.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: optcache
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{- /* The labels by which pods of a component are found. */ -}}
{{- define "optcache.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: optcache
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- /* (list $ "optcache/operator"); a name may have a tag or digest of its own. */ -}}
{{- define "optcache.image" -}}
{{- $_ := required "image.prefix is not set: build the three images, push them where your cluster pulls from, and say where, for example --set image.prefix=registry.example.com/team/ (docs/user/install.md, Images)" (index . 0).Values.image.prefix -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- $tag := default $root.Chart.AppVersion $root.Values.image.tag -}}
{{ $root.Values.image.prefix }}{{ ternary $name (printf "%s:%s" $name $tag) (contains ":" $name) }}
{{- end -}}

{{- /* What PodSecurity "restricted" asks of pods and containers. */ -}}
{{- define "optcache.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "optcache.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- /* A quantity (64Gi) in bytes. */ -}}
{{- define "optcache.bytes" -}}
{{- $number := regexFind "^[0-9.]+" . | float64 -}}
{{- $unit := regexFind "[A-Za-z]*$" . -}}
{{- $units := dict "" 1 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 -}}
{{- mulf $number (get $units $unit) | int64 -}}
{{- end -}}

{{- /* 1.17 x memory + 100 B a sample + 32 MiB, with a disk 280 B a sample and 20 MiB more, in whole MiB: docs/memory.md says why. */ -}}
{{- define "optcache.nodeMemory" -}}
{{- if .Values.node.memoryLimit -}}
{{- .Values.node.memoryLimit -}}
{{- else -}}
{{- $payload := include "optcache.bytes" .Values.node.memory | float64 -}}
{{- $disk := .Values.node.disk.enabled -}}
{{- $sample := ternary 380 100 $disk -}}
{{- $bytes := addf (mulf $payload 1.17) (mulf $sample (.Values.node.samples | float64)) (ternary 54525952 33554432 $disk) -}}
{{- divf $bytes 1048576 | ceil | int64 -}}Mi
{{- end -}}
{{- end -}}

{{- /* The size of the disk's volume, in whole MiB: a twentieth and 64 MiB more than its files may take, for the file system. */ -}}
{{- define "optcache.diskVolume" -}}
{{- $bytes := include "optcache.bytes" .Values.node.disk.capacity | float64 -}}
{{- divf (addf (mulf $bytes 1.05) 67108864) 1048576 | ceil | int64 -}}Mi
{{- end -}}

{{- /* The size of the state folder; nodes refuse to start with less than 256Mi. */ -}}
{{- define "optcache.stateSize" -}}
{{- if lt (include "optcache.bytes" .Values.node.stateSize | int64) 268435456 -}}
{{- fail (printf "node.stateSize is %s: nodes need 256Mi at least (docs/memory.md)" .Values.node.stateSize) -}}
{{- end -}}
{{- .Values.node.stateSize -}}
{{- end -}}

{{- /* The state folder, the disk where it is an emptyDir, and a GiB for logs, in whole MiB. */ -}}
{{- define "optcache.nodeDisk" -}}
{{- $state := 0 -}}
{{- if not .Values.node.stateVolume }}{{ $state = include "optcache.bytes" .Values.node.stateSize | float64 }}{{ end -}}
{{- $disk := 0 -}}
{{- if and .Values.node.disk.enabled (eq .Values.node.disk.volume "emptyDir") -}}
{{- $disk = include "optcache.bytes" (include "optcache.diskVolume" .) | float64 -}}
{{- end -}}
{{- divf (addf $state $disk 1073741824) 1048576 | ceil | int64 -}}Mi
{{- end -}}

{{- /* The page of an alert, at its heading: (list $ "OptcacheNodeDown") */ -}}
{{- define "optcache.runbook" -}}
{{- $root := index . 0 -}}
runbook_url: {{ printf "%s#%s" $root.Values.monitoring.runbook (index . 1 | lower) | quote }}
{{- end -}}
