"""The simulator: runs the real operator against a model of Kubernetes, in virtual time, with faults at chosen requests.

What is real and what is a model:

- Real: everything from `ControllerManager` down to the HTTP client: leader election, informers, reconcile loop,
  planners.
- Model: the API server (`api_server`), etcd (`object_store`), Kubernetes' controllers, scheduler and kubelet
  (`controllers`), and the network (`transport`). A test sends the same random requests to the model and to a real API
  server and compares the responses, so that the model does not drift from reality.

**Time** is virtual. All tasks share one event loop whose clock does not advance while any task can run. When every task
waits, the loop jumps to the next timer. An hour of backoff takes no time, a run depends on nothing but its inputs, and
the same inputs give the same run, request by request. A state in which no timer is left is a deadlock and is reported.

**Crash points** are enumerated rather than guessed. A scenario is run once undisturbed, which numbers every write of
the operator. Then, for each write, the operator is killed at three moments: before the server receives it, after the
server has executed it but before the response arrives, and after the response. A restarted operator knows only what the
cluster holds. Two crashes between which the cluster did not change are therefore equivalent, and only one of them is
run.

**Other faults** at each write leave the operator alive: lost requests and responses, refusals by the server, a stalled
machine, a changed clock, late, repeated or missing watch events, and other writers that interfere (`faults`).

**What must hold** after every step: the cluster ends in the same state as without the fault, no object was created or
deleted twice, the operator comes to rest within a few passes, writes nothing afterwards, and says nothing wrong in a
status.

Running thousands of scenarios from the start would take too long. At each write the process is forked instead, once per
fault to try there (`fault_runs`): the copy injects its fault, runs one more step, reports its verdict to the parent and
exits.

`fuzz` complements the enumeration with random combinations of faults, all drawn from one seed. `outages` checks that
the operator sends few requests to an API server that is down, and recovers soon after.
"""
