// The whole of Kubernetes as one program: `kubernetes PART ARGS…` runs that part with its own flags.
package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	parts := map[string]func() int{
		"etcd":                    func() int { etcdmain.Main(os.Args); return 0 },
		"kube-apiserver":          server(apiserver.NewAPIServerCommand),
		"kube-controller-manager": server(manager.NewControllerManagerCommand),
		"kube-scheduler":          server(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
		"kubelet":                 runKubelet,
		"kube-proxy":              server(proxy.NewProxyCommand),
		"kubectl":                 runKubectl,
	}
	if len(os.Args) > 1 {
		if run, known := parts[os.Args[1]]; known {
			// Each part parses the arguments as if it were alone in its program.
			os.Args = os.Args[1:]
			os.Exit(run())
		}
	}
	names := make([]string, 0, len(parts))
	for name := range parts {
		names = append(names, name)
	}
	slices.Sort(names)
	fmt.Fprintf(os.Stderr, "usage: kubernetes PART ARGS…, where PART is one of: %s\n", strings.Join(names, ", "))
	os.Exit(2)
}

func server(command func() *cobra.Command) func() int {
	return func() int { return cli.Run(command()) }
}

func runKubelet() int {
	return cli.Run(kubelet.NewKubeletCommand(context.Background()))
}

func runKubectl() int {
	// Errors are printed by kubectl itself, with its own exit codes.
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
	return 0
}
