// Kubeflow's training operator with its own controllers and validation, and with certificates that are handed to it:
// its own main program would keep them in a folder that all platforms of a machine share.
package main

import (
	"flag"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	api "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	settings "github.com/kubeflow/training-operator/pkg/config"
	"github.com/kubeflow/training-operator/pkg/controller.v1/common"
	pytorch "github.com/kubeflow/training-operator/pkg/controller.v1/pytorch"
	tensorflow "github.com/kubeflow/training-operator/pkg/controller.v1/tensorflow"
	pytorchchecks "github.com/kubeflow/training-operator/pkg/webhooks/pytorch"
	tensorflowchecks "github.com/kubeflow/training-operator/pkg/webhooks/tensorflow"
)

func main() {
	health := flag.String("health", "127.0.0.1:0", "where health is told")
	port := flag.Int("webhook-port", 9443, "where the API server asks whether a job is valid, on loopback")
	certificate := flag.String("certificate", "", "what it shows there: a file")
	key := flag.String("key", "", "the key of the certificate: a file in the same folder")
	folder := flag.String("folder", "", "where both are")
	threads := flag.Int("threads", 2, "jobs of each kind that are worked on at once")
	words := &settings.Config
	flag.StringVar(&words.PyTorchInitContainerImage, "pytorch-init-container-image", "", "what waits for the master")
	flag.StringVar(&words.PyTorchInitContainerTemplateFile, "pytorch-init-container-template-file", "", "how it is run")
	flag.IntVar(&words.PyTorchInitContainerMaxTries, "pytorch-init-container-max-tries", 100, "how often it tries")
	flag.Parse()
	ctrl.SetLogger(zap.New())

	access := config.GetConfigOrDie()
	// The usual 20 requests a second make a gang of 200 copies take 20 seconds.
	access.QPS, access.Burst = 200, 400
	kinds := runtime.NewScheme()
	must(scheme.AddToScheme(kinds))
	must(api.AddToScheme(kinds))
	server := webhook.NewServer(webhook.Options{
		Host: "127.0.0.1", Port: *port, CertDir: *folder, CertName: *certificate, KeyName: *key,
	})
	all, err := ctrl.NewManager(access, ctrl.Options{
		Scheme:                 kinds,
		Metrics:                metrics.Options{BindAddress: "0"},
		WebhookServer:          server,
		HealthProbeBindAddress: *health,
	})
	must(err)
	must(all.AddHealthzCheck("healthz", healthz.Ping))
	must(all.AddReadyzCheck("readyz", server.StartedChecker()))
	must(run(all, *threads))
	must(all.Start(ctrl.SetupSignalHandler()))
}

func run(all manager.Manager, threads int) error {
	alone := common.GenNonGangSchedulerSetupFunc()
	if err := pytorch.NewReconciler(all, alone).SetupWithManager(all, threads); err != nil {
		return err
	}
	if err := tensorflow.NewReconciler(all, alone).SetupWithManager(all, threads); err != nil {
		return err
	}
	if err := pytorchchecks.SetupWebhook(all); err != nil {
		return err
	}
	return tensorflowchecks.SetupWebhook(all)
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
