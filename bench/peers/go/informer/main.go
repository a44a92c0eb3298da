// Command informer keeps all pods in client-go's typed informer, without managedFields, and prints when it is synced.
package main

import (
	"bufio"
	"fmt"
	"log"
	"os"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		log.Fatal(err)
	}
	config.QPS = -1
	config.ContentType = "application/json"
	if len(os.Args) > 1 && os.Args[1] == "protobuf" {
		config.ContentType = "application/vnd.kubernetes.protobuf"
	}
	client := kubernetes.NewForConfigOrDie(config)
	if _, err := client.Discovery().ServerVersion(); err != nil {
		log.Fatal(err)
	}
	input := bufio.NewScanner(os.Stdin)
	fmt.Println("{}")
	input.Scan()
	began, used := time.Now(), processorTime()
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(withoutManagedFields))
	informer := factory.Core().V1().Pods().Informer()
	factory.Start(make(chan struct{}))
	cache.WaitForCacheSync(nil, informer.HasSynced)
	fmt.Printf("{\"seconds\": %f, \"cpu_s\": %f, \"pods\": %d}\n",
		time.Since(began).Seconds(), processorTime()-used, len(informer.GetStore().ListKeys()))
	input.Scan()
}

func withoutManagedFields(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}

func processorTime() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		log.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}
