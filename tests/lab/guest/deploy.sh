# Plays ironic-python-agent: looks its node up, tells every second that it is there, and takes
# commands over HTTP (agent.sh). Kernel command line: ipa-api-url=…, ipa-agent-token=… and callback=…
api=$(sed -n 's/.*ipa-api-url=\([^ ]*\).*/\1/p' /proc/cmdline)
version='X-OpenStack-Ironic-API-Version: 1.72'
mac=$(cat /sys/class/net/eth0/address)
mkdir -p /tmp/commands
look=$(sed -n 's/.*ipa-inspection-callback-url=\([^ ]*\).*/\1/p' /proc/cmdline)
if [ -n "$look" ]; then # tells what it sees; then goes on as ever
  found='{"inventory":{"interfaces":[{"name":"eth0","mac_address":"'$mac'"}],"cpu":{"count":'$(nproc)',"architecture":"'$(uname -m)'"},"memory":{"total":'$(($(awk '/MemTotal/{print $2}' /proc/meminfo) * 1024))'},"disks":[{"name":"/dev/vda","size":'$(($(cat /sys/block/vda/size) * 512))'}],"system_vendor":{"manufacturer":"'$(cat /sys/class/dmi/id/sys_vendor)'"}}}'
  until wget -q -O /dev/null --header 'X-OpenStack-Ironic-API-Version: 1.84' \
    --header 'Content-Type: application/json' --post-data "$found" "$look"; do sleep 0.3; done
  echo "AGENT told what it found"
fi
until wget -q -O /tmp/lookup --header "$version" "$api/v1/lookup?addresses=$mac"; do sleep 0.3; done
field() { grep -o "\"$1\": *\"[^\"]*\"" /tmp/lookup | head -n 1 | sed 's/.*"\([^"]*\)"$/\1/'; }
own=$(sed -n 's/.*ipa-agent-token=\([^ ]*\).*/\1/p' /proc/cmdline)
uuid=$(field uuid); token=$(field agent_token); [ "$token" != '******' ] || token=$own
echo "$token" >/tmp/token
echo "AGENT found node $uuid"
nc -ll -p 9999 -e /agent.sh &
cat >/bin/heartbeat <<END
#!/bin/busybox sh
exec wget -q -O /dev/null --header '$version' --header 'Content-Type: application/json' \
  --post-data '{"callback_url":"$k_callback","agent_version":"0","agent_token":"$(cat /tmp/token)"}' \
  "$api/v1/heartbeat/$uuid"
END
chmod +x /bin/heartbeat
until heartbeat; do sleep 0.3; done
echo "AGENT heard"
while sleep 1; do [ -e /tmp/rescued ] || heartbeat; done
