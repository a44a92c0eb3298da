package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

const (
	fieldOwner = client.FieldOwner("go-operator")
	// appliedAnnotation has the hash of what was last applied: an equal one means that there is nothing to write.
	appliedAnnotation = "bench.pinterest.com/applied"
)

type reconciler struct{ client.Client }

func setUp(manager ctrl.Manager, workers int) error {
	return ctrl.NewControllerManagedBy(manager).
		For(&PinterestService{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.ServiceAccount{}, notOurs).
		Owns(&corev1.ConfigMap{}, notOurs).
		Owns(&corev1.Service{}, notOurs).
		Owns(&appsv1.Deployment{}, notOurs).
		Owns(&policyv1.PodDisruptionBudget{}, notOurs).
		Owns(&networkingv1.Ingress{}, notOurs).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(&reconciler{manager.GetClient()})
}

// ownWrites leaves out events that only echo what this operator wrote: they would have each service reconciled twice.
var ownWrites = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(update event.UpdateEvent) bool {
		before, after := update.ObjectOld.GetAnnotations(), update.ObjectNew.GetAnnotations()
		return before[appliedAnnotation] == after[appliedAnnotation]
	},
}
var notOurs = builder.WithPredicates(ownWrites)

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var owner PinterestService
	if err := r.Get(ctx, request.NamespacedName, &owner); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	content := revisionContent(&owner)
	revision := owner.Status.Revision
	if owner.Status.Content != content {
		revision++
	}
	for _, wanted := range natives(&owner, revision, content) {
		if err := r.apply(ctx, wanted); err != nil {
			return ctrl.Result{}, err
		}
	}
	status := wantedStatus(&owner, revision, content)
	if reflect.DeepEqual(status, owner.Status) {
		return ctrl.Result{}, nil
	}
	owner.Status = status
	return ctrl.Result{}, r.Status().Update(ctx, &owner, fieldOwner)
}

// apply writes an object unless its last applied state is the wanted one.
func (r *reconciler) apply(ctx context.Context, wanted client.Object) error {
	hash := contentHash(wanted)
	found := reflect.New(reflect.TypeOf(wanted).Elem()).Interface().(client.Object)
	err := r.Get(ctx, client.ObjectKeyFromObject(wanted), found)
	if err == nil && found.GetAnnotations()[appliedAnnotation] == hash {
		return nil
	}
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	annotations := map[string]string{appliedAnnotation: hash}
	for name, value := range wanted.GetAnnotations() {
		annotations[name] = value
	}
	wanted.SetAnnotations(annotations)
	return r.Patch(ctx, wanted, client.Apply, fieldOwner, client.ForceOwnership)
}

func wantedStatus(owner *PinterestService, revision int, content string) ServiceStatus {
	status := ServiceStatus{
		ObservedGeneration: owner.Generation,
		Conditions:         append([]metav1.Condition(nil), owner.Status.Conditions...),
		Revision:           revision,
		Content:            content,
		Address:            "http://" + host(owner) + ":8080",
		Selector:           workloadLabel + "=" + owner.Name,
		Progress:           Progress{Wanted: owner.Spec.Replicas},
	}
	ready, reason, message := metav1.ConditionTrue, "Available", "0 of 0 replicas ready"
	if owner.Spec.Replicas > 0 {
		ready, reason = metav1.ConditionFalse, "Progressing"
		message = fmt.Sprintf("0 of %d replicas ready so far", owner.Spec.Replicas)
	}
	for _, each := range []metav1.Condition{
		{Type: "Ready", Status: ready, Reason: reason, Message: message},
		{Type: "Available", Status: ready, Reason: reason, Message: "0 replicas of any revision ready"},
	} {
		each.ObservedGeneration = owner.Generation
		meta.SetStatusCondition(&status.Conditions, each)
	}
	return status
}

func contentHash(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:12]
}
