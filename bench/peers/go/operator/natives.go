package main

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	workloadLabel = "pinterest.com/workload"
	templateLabel = "pinterest.com/template"
	tier          = "on-demand"
)

// natives are the objects that a service becomes.
func natives(owner *PinterestService, revision int, content string) []client.Object {
	objects := []client.Object{
		serviceAccount(owner), service(owner), deployment(owner), ingress(owner),
		revisionRecord(owner, revision, content),
	}
	// Of a single replica, a budget of 25% would protect nothing.
	if owner.Spec.Replicas > 1 {
		objects = append(objects, disruptionBudget(owner))
	}
	return objects
}

func host(owner *PinterestService) string { return owner.Name + "." + owner.Namespace + ".localhost" }

func labels(owner *PinterestService) map[string]string {
	return map[string]string{
		"pinterest.com/project": owner.Namespace, workloadLabel: owner.Name,
		"pinterest.com/kind": kind, "pinterest.com/tier": tier,
	}
}

func selector(owner *PinterestService) map[string]string {
	return map[string]string{workloadLabel: owner.Name}
}

func metadata(owner *PinterestService, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: owner.Namespace, Labels: labels(owner),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, groupVersion.WithKind(kind))},
	}
}

func typeMeta(version, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: version, Kind: kind}
}

func serviceAccount(owner *PinterestService) client.Object {
	return &corev1.ServiceAccount{
		TypeMeta: typeMeta("v1", "ServiceAccount"), ObjectMeta: metadata(owner, owner.Name),
		AutomountServiceAccountToken: new(bool),
	}
}

func service(owner *PinterestService) client.Object {
	port := corev1.ServicePort{
		Name: "http", Port: 80, TargetPort: intstr.FromString("http"), Protocol: corev1.ProtocolTCP,
	}
	return &corev1.Service{
		TypeMeta: typeMeta("v1", "Service"), ObjectMeta: metadata(owner, owner.Name),
		Spec: corev1.ServiceSpec{Selector: selector(owner), Ports: []corev1.ServicePort{port}},
	}
}

func deployment(owner *PinterestService) client.Object {
	template := podTemplate(owner)
	template.Labels[templateLabel] = contentHash(template)
	return &appsv1.Deployment{
		TypeMeta: typeMeta("apps/v1", "Deployment"), ObjectMeta: metadata(owner, owner.Name),
		Spec: appsv1.DeploymentSpec{
			Replicas: &owner.Spec.Replicas,
			Selector: &metav1.LabelSelector{MatchLabels: selector(owner)},
			Strategy: appsv1.DeploymentStrategy{
				Type: appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{
					MaxSurge: new(intstr.FromString("25%")), MaxUnavailable: new(intstr.FromInt32(0)),
				},
			},
			ProgressDeadlineSeconds: new(int32(600)),
			RevisionHistoryLimit:    new(int32(0)),
			Template:                template,
		},
	}
}

func podTemplate(owner *PinterestService) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels(owner)},
		Spec: corev1.PodSpec{
			EnableServiceLinks:            new(false),
			AutomountServiceAccountToken:  new(false),
			TerminationGracePeriodSeconds: new(int64(33)),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot:   new(true),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers:         []corev1.Container{container(owner)},
			ServiceAccountName: owner.Name,
			PriorityClassName:  "pincompute-" + tier,
		},
	}
}

func container(owner *PinterestService) corev1.Container {
	port := owner.Spec.Port
	memory := resource.MustParse("128Mi")
	return corev1.Container{
		Name: owner.Name, Image: owner.Spec.Image, ImagePullPolicy: corev1.PullAlways,
		Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: port, Protocol: corev1.ProtocolTCP}},
		ReadinessProbe: &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(port)}},
			PeriodSeconds: 2, FailureThreshold: 3,
		},
		Lifecycle: &corev1.Lifecycle{
			PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 3}},
		},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": memory},
			Limits:   corev1.ResourceList{"memory": memory},
		},
		Env: []corev1.EnvVar{
			{Name: "PIN_PROJECT", Value: owner.Namespace}, {Name: "PIN_WORKLOAD", Value: owner.Name},
			{Name: "PIN_KIND", Value: kind}, {Name: "PIN_TIER", Value: tier},
			{Name: "PORT", Value: fmt.Sprint(port)},
		},
	}
}

func disruptionBudget(owner *PinterestService) client.Object {
	return &policyv1.PodDisruptionBudget{
		TypeMeta: typeMeta("policy/v1", "PodDisruptionBudget"), ObjectMeta: metadata(owner, owner.Name),
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector:                   &metav1.LabelSelector{MatchLabels: selector(owner)},
			MaxUnavailable:             new(intstr.FromString("25%")),
			UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow),
		},
	}
}

func ingress(owner *PinterestService) client.Object {
	path := networkingv1.HTTPIngressPath{
		Path: "/", PathType: new(networkingv1.PathTypePrefix),
		Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
			Name: owner.Name, Port: networkingv1.ServiceBackendPort{Name: "http"},
		}},
	}
	rule := networkingv1.IngressRule{Host: host(owner)}
	rule.HTTP = &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{path}}
	return &networkingv1.Ingress{
		TypeMeta: typeMeta("networking.k8s.io/v1", "Ingress"), ObjectMeta: metadata(owner, owner.Name),
		Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{rule}},
	}
}

// revisedFields are the fields of a service of which any change makes a revision.
type revisedFields struct {
	Image string `json:"image"`
	Port  int32  `json:"port"`
}

func revisionContent(owner *PinterestService) string {
	return contentHash(revisedFields{owner.Spec.Image, owner.Spec.Port})
}

func revisionRecord(owner *PinterestService, revision int, content string) client.Object {
	text, err := json.MarshalIndent(revisedFields{owner.Spec.Image, owner.Spec.Port}, "", " ")
	if err != nil {
		panic(err)
	}
	record := &corev1.ConfigMap{
		TypeMeta: typeMeta("v1", "ConfigMap"), ObjectMeta: metadata(owner, fmt.Sprintf("%s-%d", owner.Name, revision)),
		Immutable: new(true), Data: map[string]string{"spec.json": string(text)},
	}
	record.Annotations = map[string]string{
		"pinterest.com/revision": fmt.Sprint(revision), "pinterest.com/content": content, "pinterest.com/runtime": "0",
	}
	return record
}
