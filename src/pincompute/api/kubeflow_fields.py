"""Pod fields in Kubeflow's CRDs, which correspond to Kubernetes 1.29. Written by scripts/generate_kubeflow_fields.py.

Maps a structure to its fields; `field=structure` names the structure of the field's value.
"""

from __future__ import annotations

POD_STRUCTURES: dict[str, str] = {
    "template": "metadata=metadata spec=spec",
    "metadata": "annotations finalizers labels name namespace",
    "spec": (
        "activeDeadlineSeconds affinity=affinity automountServiceAccountToken containers=containers "
        "dnsConfig=dnsConfig dnsPolicy enableServiceLinks ephemeralContainers=ephemeralContainers "
        "hostAliases=hostAliases hostIPC hostNetwork hostPID hostUsers hostname imagePullSecrets=claims "
        "initContainers=containers nodeName nodeSelector os=claims overhead preemptionPolicy priority "
        "priorityClassName readinessGates=readinessGates resourceClaims=resourceClaims restartPolicy "
        "runtimeClassName schedulerName schedulingGates=claims securityContext=spec.securityContext serviceAccount "
        "serviceAccountName setHostnameAsFQDN shareProcessNamespace subdomain terminationGracePeriodSeconds "
        "tolerations=tolerations topologySpreadConstraints=topologySpreadConstraints volumes=volumes"
    ),
    "affinity": "nodeAffinity=nodeAffinity podAffinity=podAffinity podAntiAffinity=podAffinity",
    "nodeAffinity": (
        "preferredDuringSchedulingIgnoredDuringExecution=preferredDuringSchedulingIgnoredDuringExecution "
        "requiredDuringSchedulingIgnoredDuringExecution=requiredDuringSchedulingIgnoredDuringExecution"
    ),
    "preferredDuringSchedulingIgnoredDuringExecution": "preference=preference weight",
    "preference": "matchExpressions=matchExpressions matchFields=matchExpressions",
    "matchExpressions": "key operator values",
    "requiredDuringSchedulingIgnoredDuringExecution": "nodeSelectorTerms=preference",
    "podAffinity": (
        "preferredDuringSchedulingIgnoredDuringExecution=podAffinity.preferredDuringSchedulingIgnoredDuringExecution "
        "requiredDuringSchedulingIgnoredDuringExecution=podAffinityTerm"
    ),
    "podAffinity.preferredDuringSchedulingIgnoredDuringExecution": "podAffinityTerm=podAffinityTerm weight",
    "podAffinityTerm": (
        "labelSelector=labelSelector matchLabelKeys mismatchLabelKeys namespaceSelector=labelSelector namespaces "
        "topologyKey"
    ),
    "labelSelector": "matchExpressions=matchExpressions matchLabels",
    "containers": (
        "args command env=env envFrom=envFrom image imagePullPolicy lifecycle=lifecycle "
        "livenessProbe=livenessProbe name ports=ports readinessProbe=livenessProbe resizePolicy=resizePolicy "
        "resources=resources restartPolicy securityContext=securityContext startupProbe=livenessProbe stdin "
        "stdinOnce terminationMessagePath terminationMessagePolicy tty volumeDevices=volumeDevices "
        "volumeMounts=volumeMounts workingDir"
    ),
    "env": "name value valueFrom=valueFrom",
    "valueFrom": (
        "configMapKeyRef=configMapKeyRef fieldRef=fieldRef resourceFieldRef=resourceFieldRef "
        "secretKeyRef=configMapKeyRef"
    ),
    "configMapKeyRef": "key name optional",
    "fieldRef": "apiVersion fieldPath",
    "resourceFieldRef": "containerName divisor resource",
    "envFrom": "configMapRef=configMapRef prefix secretRef=configMapRef",
    "configMapRef": "name optional",
    "lifecycle": "postStart=postStart preStop=postStart",
    "postStart": "exec=exec httpGet=httpGet sleep=sleep tcpSocket=tcpSocket",
    "exec": "command",
    "httpGet": "host httpHeaders=httpHeaders path port scheme",
    "httpHeaders": "name value",
    "sleep": "seconds",
    "tcpSocket": "host port",
    "livenessProbe": (
        "exec=exec failureThreshold grpc=grpc httpGet=httpGet initialDelaySeconds periodSeconds successThreshold "
        "tcpSocket=tcpSocket terminationGracePeriodSeconds timeoutSeconds"
    ),
    "grpc": "port service",
    "ports": "containerPort hostIP hostPort name protocol",
    "resizePolicy": "resourceName restartPolicy",
    "resources": "claims=claims limits requests",
    "claims": "name",
    "securityContext": (
        "allowPrivilegeEscalation capabilities=capabilities privileged procMount readOnlyRootFilesystem runAsGroup "
        "runAsNonRoot runAsUser seLinuxOptions=seLinuxOptions seccompProfile=seccompProfile "
        "windowsOptions=windowsOptions"
    ),
    "capabilities": "add drop",
    "seLinuxOptions": "level role type user",
    "seccompProfile": "localhostProfile type",
    "windowsOptions": "gmsaCredentialSpec gmsaCredentialSpecName hostProcess runAsUserName",
    "volumeDevices": "devicePath name",
    "volumeMounts": "mountPath mountPropagation name readOnly subPath subPathExpr",
    "dnsConfig": "nameservers options=httpHeaders searches",
    "ephemeralContainers": (
        "args command env=env envFrom=envFrom image imagePullPolicy lifecycle=lifecycle "
        "livenessProbe=livenessProbe name ports=ports readinessProbe=livenessProbe resizePolicy=resizePolicy "
        "resources=resources restartPolicy securityContext=securityContext startupProbe=livenessProbe stdin "
        "stdinOnce targetContainerName terminationMessagePath terminationMessagePolicy tty "
        "volumeDevices=volumeDevices volumeMounts=volumeMounts workingDir"
    ),
    "hostAliases": "hostnames ip",
    "readinessGates": "conditionType",
    "resourceClaims": "name source=source",
    "source": "resourceClaimName resourceClaimTemplateName",
    "spec.securityContext": (
        "fsGroup fsGroupChangePolicy runAsGroup runAsNonRoot runAsUser seLinuxOptions=seLinuxOptions "
        "seccompProfile=seccompProfile supplementalGroups sysctls=httpHeaders windowsOptions=windowsOptions"
    ),
    "tolerations": "effect key operator tolerationSeconds value",
    "topologySpreadConstraints": (
        "labelSelector=labelSelector matchLabelKeys maxSkew minDomains nodeAffinityPolicy nodeTaintsPolicy "
        "topologyKey whenUnsatisfiable"
    ),
    "volumes": (
        "awsElasticBlockStore=awsElasticBlockStore azureDisk=azureDisk azureFile=azureFile cephfs=cephfs "
        "cinder=cinder configMap=configMap csi=csi downwardAPI=downwardAPI emptyDir=emptyDir ephemeral=ephemeral "
        "fc=fc flexVolume=flexVolume flocker=flocker gcePersistentDisk=gcePersistentDisk gitRepo=gitRepo "
        "glusterfs=glusterfs hostPath=hostPath iscsi=iscsi name nfs=nfs "
        "persistentVolumeClaim=persistentVolumeClaim photonPersistentDisk=photonPersistentDisk "
        "portworxVolume=portworxVolume projected=projected quobyte=quobyte rbd=rbd scaleIO=scaleIO secret=secret "
        "storageos=storageos vsphereVolume=vsphereVolume"
    ),
    "awsElasticBlockStore": "fsType partition readOnly volumeID",
    "azureDisk": "cachingMode diskName diskURI fsType kind readOnly",
    "azureFile": "readOnly secretName shareName",
    "cephfs": "monitors path readOnly secretFile secretRef=claims user",
    "cinder": "fsType readOnly secretRef=claims volumeID",
    "configMap": "defaultMode items=items name optional",
    "items": "key mode path",
    "csi": "driver fsType nodePublishSecretRef=claims readOnly volumeAttributes",
    "downwardAPI": "defaultMode items=downwardAPI.items",
    "downwardAPI.items": "fieldRef=fieldRef mode path resourceFieldRef=resourceFieldRef",
    "emptyDir": "medium sizeLimit",
    "ephemeral": "volumeClaimTemplate=volumeClaimTemplate",
    "volumeClaimTemplate": "metadata=metadata spec=volumeClaimTemplate.spec",
    "volumeClaimTemplate.spec": (
        "accessModes dataSource=dataSource dataSourceRef=dataSourceRef "
        "resources=volumeClaimTemplate.spec.resources selector=labelSelector storageClassName "
        "volumeAttributesClassName volumeMode volumeName"
    ),
    "dataSource": "apiGroup kind name",
    "dataSourceRef": "apiGroup kind name namespace",
    "volumeClaimTemplate.spec.resources": "limits requests",
    "fc": "fsType lun readOnly targetWWNs wwids",
    "flexVolume": "driver fsType options readOnly secretRef=claims",
    "flocker": "datasetName datasetUUID",
    "gcePersistentDisk": "fsType partition pdName readOnly",
    "gitRepo": "directory repository revision",
    "glusterfs": "endpoints path readOnly",
    "hostPath": "path type",
    "iscsi": (
        "chapAuthDiscovery chapAuthSession fsType initiatorName iqn iscsiInterface lun portals readOnly "
        "secretRef=claims targetPortal"
    ),
    "nfs": "path readOnly server",
    "persistentVolumeClaim": "claimName readOnly",
    "photonPersistentDisk": "fsType pdID",
    "portworxVolume": "fsType readOnly volumeID",
    "projected": "defaultMode sources=sources",
    "sources": (
        "clusterTrustBundle=clusterTrustBundle configMap=sources.configMap downwardAPI=sources.downwardAPI "
        "secret=sources.configMap serviceAccountToken=serviceAccountToken"
    ),
    "clusterTrustBundle": "labelSelector=labelSelector name optional path signerName",
    "sources.configMap": "items=items name optional",
    "sources.downwardAPI": "items=downwardAPI.items",
    "serviceAccountToken": "audience expirationSeconds path",
    "quobyte": "group readOnly registry tenant user volume",
    "rbd": "fsType image keyring monitors pool readOnly secretRef=claims user",
    "scaleIO": (
        "fsType gateway protectionDomain readOnly secretRef=claims sslEnabled storageMode storagePool system volumeName"
    ),
    "secret": "defaultMode items=items optional secretName",
    "storageos": "fsType readOnly secretRef=claims volumeName volumeNamespace",
    "vsphereVolume": "fsType storagePolicyID storagePolicyName volumePath",
}
