"""The benchmark: what Siderite does, what the machine could do at most, what Ironic does.

A figure alone says little about a program on a noisy machine. So every workload is measured, in one
run, against

- a *limit*: for reads a bare ASGI app on the same HTTP server which returns the very bytes that the
  service returned (`static`); for writes bare commits of one row on the same database settings
  (`commits`). Service and limit take turns, A B A B, so that noise hits both, and the ratio is the
  median over the turns;
- with `--peer`, *Ironic* from PyPI, all-in-one, in an environment of its own (`peer`), under the
  same workloads, the same client and the same fleet.

The nouns: a `Subject` is a program that can be started; a `Stage` is a running one with its fleet
of nodes and its limits; a `Workload` asks a stage for `Measured` figures; a `Bar` judges them; a
`Row` is one line of the table. The room imports nothing of Siderite: it knows its address only.
"""
