#!/bin/bash -e
# host.sh FOLDER NAME: libvirtd with all its files in FOLDER; called by host.py in mount, PID and
# UTS namespaces of its own, so nothing of this machine's /etc, /run and /var is seen or touched.
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs /run
for pair in run:/run/libvirt etc:/etc/libvirt lib:/var/lib/libvirt cache:/var/cache/libvirt log:/var/log/libvirt; do
    mkdir -p "${pair#*:}"
    mount --bind "$1/${pair%%:*}" "${pair#*:}"
done
# A disk that is soon full, for a pool of its own (LabHost.small).
mkdir -p /var/lib/libvirt/small
mount -t tmpfs -o size=24m tmpfs /var/lib/libvirt/small
hostname "$2"
ip link set lo up 2>/dev/null || true # matters only in a network namespace of its own
virtlogd --daemon --pid-file /run/virtlogd.pid
listen=
if [ -d "$1/doors" ]; then # over ssh and TLS too
    mkdir -p /run/sshd
    "$(command -v sshd)" -f "$1/doors/sshd_config" -E "$1/doors/sshd.log"
    listen=--listen
fi
# tini reaps QEMU at once; without that every stop of a guest takes two seconds. A libvirtd that is
# killed comes again, as systemd would have it, once nothing says that it shall stay down.
exec tini -s -- bash -c 'while true; do
    rc=0; libvirtd $1 --pid-file /run/libvirtd.pid || rc=$?
    [ $rc = 137 ] || exit $rc
    while [ -e "$0/down" ]; do sleep 0.05; done
done' "$1" "$listen"
