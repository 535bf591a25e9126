# What a deploy agent does, in a few lines: lookup, heartbeat, write the image, report, power off.
# The kernel command line has api=http://…; the image's address comes with the lookup.
mac=$(cat /sys/class/net/eth0/address)
until wget -q -O /tmp/lookup "$k_api/v1/lookup?addresses=$mac"; do sleep 0.5; done
field() { sed -n 's/.*"'$1'": *"\([^"]*\)".*/\1/p' /tmp/lookup; }
wget -q -O - --header 'Content-Type: application/json' \
  --post-data '{"callback_url":"http://10.0.2.15:9999","agent_version":"0"}' \
  "$k_api/v1/heartbeat/$(field uuid)" >/dev/null
echo "DEPLOY heartbeat rc=$?"
wget -q -O - "$(field image)" | dd of=/dev/vda bs=1M conv=fsync 2>&1 | tail -1
wget -q -O - --post-data '{"state":"deployed"}' "$k_api/v1/done/$(field uuid)" >/dev/null
echo "DEPLOY done"
[ "$k_then" = reboot ] && reboot -f || poweroff -f
