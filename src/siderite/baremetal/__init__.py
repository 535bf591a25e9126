"""The bare metal service: nodes, their state machine, power, steps. Ironic-compatible on the wire.

    web ──command──▶ usecases ──fire──▶ domain          workers ──▶ drivers
                         └── one commit: state + fact + work ──▶ workers pick it up

`domain` says what is legal, `usecases` decide and record, `store` keeps, `workers` carry on with
what `drivers` do to hardware, `web` translates. Nothing here knows the compute service.
"""
