package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var groupVersion = schema.GroupVersion{Group: "pinterest.com", Version: "v1"}

const kind = "PinterestService"

// PinterestService has the fields of a service that the comparison uses.
type PinterestService struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ServiceSpec   `json:"spec"`
	Status            ServiceStatus `json:"status,omitzero"`
}

type ServiceSpec struct {
	Image    string `json:"image"`
	Port     int32  `json:"port"`
	Replicas int32  `json:"replicas"`
}

type ServiceStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	Revision           int                `json:"revision,omitempty"`
	Content            string             `json:"content,omitempty"`
	Address            string             `json:"address,omitempty"`
	Selector           string             `json:"selector,omitempty"`
	Progress           Progress           `json:"progress"`
}

type Progress struct {
	Wanted int32 `json:"wanted,omitempty"`
	Ready  int32 `json:"ready,omitempty"`
}

type PinterestServiceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PinterestService `json:"items"`
}

func (in *PinterestService) DeepCopyObject() runtime.Object {
	out := *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Status.Conditions = append([]metav1.Condition(nil), in.Status.Conditions...)
	return &out
}

func (in *PinterestServiceList) DeepCopyObject() runtime.Object {
	out := *in
	out.Items = make([]PinterestService, len(in.Items))
	for index := range in.Items {
		out.Items[index] = *in.Items[index].DeepCopyObject().(*PinterestService)
	}
	return &out
}

func addKnownTypes(scheme *runtime.Scheme) {
	scheme.AddKnownTypes(groupVersion, &PinterestService{}, &PinterestServiceList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
}
