"""What a workload's pods are: from the short form and the template to one template, with the runtime's parts in it."""
