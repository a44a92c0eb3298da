// Kubeflow's training operator: upstream controllers and webhooks with a main program of our own, which reads certificates from
// a given folder. The upstream program stores them in a folder that all platforms of a machine would share.
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
	health := flag.String("health", "127.0.0.1:0", "listen address of the health endpoint")
	port := flag.Int("webhook-port", 9443, "port of the validating webhook, on loopback")
	certificate := flag.String("certificate", "", "certificate file of the webhook")
	key := flag.String("key", "", "key file of the certificate, in the same folder")
	folder := flag.String("folder", "", "folder of certificate and key")
	threads := flag.Int("threads", 2, "jobs of each kind that are reconciled concurrently")
	options := &settings.Config
	flag.StringVar(&options.PyTorchInitContainerImage, "pytorch-init-container-image", "", "image of the init container that waits for the master")
	flag.StringVar(&options.PyTorchInitContainerTemplateFile, "pytorch-init-container-template-file", "", "template file of that container")
	flag.IntVar(&options.PyTorchInitContainerMaxTries, "pytorch-init-container-max-tries", 100, "seconds that it waits")
	flag.Parse()
	ctrl.SetLogger(zap.New())

	access := config.GetConfigOrDie()
	// With the default of 20 requests a second, creating a gang of 200 pods takes 20 seconds.
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
