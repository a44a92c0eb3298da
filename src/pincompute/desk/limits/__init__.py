"""Overload protection: bounds what one desk does at a time, fairly between clients, and rejects the rest early.

A desk is shared by every team, so one client that sends a thousand requests must not delay the others, and a request
that cannot be served soon must be rejected before it costs anything. Four bounds work together. A request passes them
from the outside in, and each protects what stands behind it:

1. `connections` bounds open sockets. Memory and file descriptors are spent before anything is known of a client, so
   there is nothing to be fair by. At the limit the oldest connection without an active request is closed for the new
   one; a client that means to send a request does so at once, so its connection is never the oldest idle one. A limit
   per address would shut out all clients behind one gateway for the behaviour of one. Idle connections and unfinished
   TLS handshakes time out.
2. `authn.throttle` bounds the calls to the cluster that unknown service account tokens take, by the account that a
   valid signature names, otherwise by client address. Signatures are verified without a bound, as that costs about as
   much as a rejection.
3. `rate_limiter` (a token bucket for each client, by identity) bounds how often a client may ask over time, including
   requests that would be rejected anyway.
4. `fair_queue` bounds how much runs at once. Reads, writes and streams have a queue each, so that a burst of deploys
   does not delay `pin status`, and a thousand open streams delay neither.

How the fair queue decides:

- *Round robin over clients, not over requests.* A single FIFO is fair to the client that sends most. With round robin a
  client with one request waits for at most one request of each other client.
- *A short queue.* 128 waiting requests are less than a second of work. A client whose request waits longer than that
  would time out and retry, and the work would be wasted; an early 429 is worth more than a late success.
- *The longest queue pays.* A limit per client alone does not help when three clients fill the queue. When it is full,
  the newest waiting request of the client with most requests is evicted for a client with fewer: nothing has been done
  for it yet, and it would have waited longest. A running request is never evicted.
- *The body is read before the turn, the platform is waited for after it.* Neither is work of the desk. A client that
  sends slowly, or a cluster that answers slowly, would otherwise occupy a slot that others could use. The request keeps
  its place in the queue while its body arrives (at most 20 seconds), and releases its slot (`Slot.release`) as soon as
  it only waits for delivery.
- *Retry-After says when a retry is worth it.* It is estimated from recent durations. A CLI knows only of itself, so no
  retry budget of its own keeps a thousand CLIs from retrying at once; the desk sees them all. It tells a share of the
  rejected requests a short delay (a tenth of all requests, plus as many as the queue holds) and the others the maximum,
  for which `pin` does not wait. In a burst every client is told a short delay; in a flood retries stay near capacity.

A rejection costs about a tenth of a millisecond: `middleware.reject_or_admit` runs before authorization, before the
body is read and before a task is started for the handler, and the text of frequent rejections is cached. An earlier
version also answered a repeated request of a rejected client from its raw bytes, before aiohttp parsed them. It saved
half of that cost, and needed a second HTTP parser on the same stream; the risk that two parsers disagree about where a
request ends (request smuggling) was not worth 0.05 ms of a rejected request.

All limits are per desk process. Work that was accepted and is not delivered yet is bounded separately, by its count in
the database (`pipeline.MAX_UNDELIVERED`), which is the only number that several desks share.
"""
