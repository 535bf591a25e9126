#!/bin/busybox sh
# One HTTP request to the agent that deploy.sh plays, on stdin and stdout: POST gives a command, GET
# lists all.
export PATH=/bin:/sbin
answer() { printf 'HTTP/1.0 %s .\r\nContent-Type: application/json\r\n\r\n%s' "$1" "$2"; }
record() { # id, name, params, status, error
  printf '{"id":"%s","command_name":"%s","command_params":%s,"command_status":"%s","command_error":%s,"command_result":null}' "$@" >/tmp/commands/$1.part
  mv /tmp/commands/$1.part /tmp/commands/$1
}
[ -e /tmp/rescued ] && exit # it serves its user alone
read -r method target _
length=0
while read -r key value; do
  value=${value%$'\r'}
  case $key in $'\r'|'') break ;; [Cc]ontent-[Ll]ength:) length=$value ;; esac
done
case "&${target#*\?}&" in *"&agent_token=$(cat /tmp/token)&"*) ;; *) answer 401 '{"error":"no token"}'; exit ;; esac
if [ "$method" = GET ]; then
  list=$(for c in /tmp/commands/[0-9]*[0-9]; do [ -e "$c" ] && { cat "$c"; printf ,; }; done)
  answer 200 "{\"commands\":[${list%,}]}"; exit
fi
body=$(head -c "$length")
name=$(echo "$body" | sed -n 's/^{"name": *"\([^"]*\)".*/\1/p')
params=${body#*\"params\":}; params=${params%\}}
step=$(echo "$body" | sed -n 's/.*"step": *{"interface": *"[^"]*", *"step": *"\([^"]*\)".*/\1/p')
id=$(cut -d' ' -f1 /proc/uptime | tr -d .)$$
word() { echo "$body" | sed -n "s/.*\"$1\": *\[*\"\([^\"]*\)\".*/\1/p"; }
work() {
  case $step in
  write_image)
    wget -q -O /tmp/image "$(word urls)" || { echo "cannot fetch the image"; return; }
    sum=$($(word os_hash_algo)sum /tmp/image | cut -d' ' -f1)
    [ "$sum" = "$(word os_hash_value)" ] || { echo "the image's checksum is $sum"; return; }
    dd if=/tmp/image of=/dev/vda bs=1M conv=fsync 2>/dev/null || echo "cannot write the disk"
    case $body in *'"configdrive":'*) echo "AGENT has a config drive" >/dev/console ;; esac ;;
  erase_devices_metadata)
    dd if=/dev/zero of=/dev/vda bs=1M count=1 conv=fsync,notrunc 2>/dev/null || echo "cannot erase" ;;
  *) echo "there is no step $step" ;;
  esac
}
case $name in
standby.sync) sync; record $id $name "$params" SUCCEEDED null ;;
rescue.finalize_rescue)
  record $id $name '{}' SUCCEEDED null; touch /tmp/rescued
  case $(word rescue_password) in '$6$'*) echo "AGENT has a rescue password" >/dev/console ;; esac ;;
*.execute_*_step)
  record $id $name "$params" RUNNING null
  (
    echo "AGENT begins $step"
    why=$(work)
    if [ -z "$why" ]; then record $id $name "$params" SUCCEEDED null; echo "AGENT did $step"
    else record $id $name "$params" FAILED "{\"message\":\"$why\"}"; echo "AGENT failed at $step: $why"; fi
    heartbeat
  ) </dev/null >/dev/console 2>&1 & ;;
*) record $id $name "$params" FAILED "{\"message\":\"there is no command $name\"}" ;;
esac
answer 200 "$(cat /tmp/commands/$id)"
