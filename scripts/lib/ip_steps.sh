# shellcheck shell=bash disable=SC2154
# The steps of scripts/demo-ip. Source after ip_ends.sh. Each is step_NAME FAULTS: prints one line of
# what it saw, and fails if that is not as it should be. FAULTS is `none`, or what the cards inject.
# Nothing is judged by time; the limits are for what never comes.

ip_limit=180 # seconds; for a transfer that two busy testpmd processes and all else share two cores with

# step_lacks STEP: prints the first program of the step that is not installed; fails if all are.
step_lacks() {
  local program programs=ping
  case $1 in
    iperf3) programs=iperf3 ;;
    web | web6 | reset) programs=curl ;;
    ssh) programs='ssh dropbear dropbearkey' ;;
  esac
  for program in $programs; do
    command -v "$program" >/dev/null || { echo "$program"; return 0; }
  done
  return 1
}

# pinged FAULTS ADDRESS...: all answer; with faults, which may take frames, one of them.
pinged() {
  local faults=$1 text got
  shift
  text=$(ip_in a ping -n -c 5 -i 0.2 -W 10 "$@") || true
  got=$(sed -n 's/.* \([0-9]*\) received.*/\1/p' <<<"$text")
  echo "${got:-0} of 5 answered, $(sed -n 's,.*= [^/]*/\([^/]*\)/.*,\1 ms,p' <<<"$text")"
  if [ "$faults" = none ]; then [ "${got:-0}" -eq 5 ]; else [ "${got:-0}" -ge 1 ]; fi
}

step_ping() { pinged "$1" 10.77.0.2; }

# An unknown neighbour is asked for by multicast: neighbour discovery.
step_ping6() {
  ip -n "$ip_name-a" -6 neigh flush dev rio0
  pinged "$1" fd77::2 || return
  neighbour fd77::2
}

step_arp() {
  ip -n "$ip_name-a" neigh flush dev rio0
  pinged "$1" 10.77.0.2 >/dev/null || true
  echo "10.77.0.2 is at $(neighbour 10.77.0.2 && echo "${ip_mac[b]}")"
  neighbour 10.77.0.2
}

# neighbour ADDRESS: side a knows side b's address, which is that of its card.
neighbour() { ip -n "$ip_name-a" neigh show "$1" | grep -q "lladdr ${ip_mac[b]}"; }

# Path MTU discovery: a router says that a packet is too big, and its sender learns it.
step_mtu() {
  local version to route over=$((ip_small_mtu - 28))
  for version in 4 6; do
    to=10.78.0.2
    [ $version = 4 ] || { to=fd78::2; over=$((ip_small_mtu - 48)); }
    ip -n "$ip_name-a" -$version route flush cache
    for _ in $(seq 20); do # with faults the question may get lost, or the answer
      ip_in a ping -$version -n -M "do" -c 1 -W 5 -s 1400 $to >"$ip_work/mtu.log" 2>&1 || true
      route=$(ip -n "$ip_name-a" -$version route get $to)
      grep -q "mtu $ip_small_mtu" <<<"$route" && break
    done
    grep -q "mtu $ip_small_mtu" <<<"$route" || { echo "IPv$version has not learnt the MTU: $route"; return 1; }
    for _ in $(seq 20); do
      ip_in a ping -$version -n -M "do" -c 1 -W 5 -s $over $to >"$ip_work/mtu.log" 2>&1 && break
    done
    grep -q ' 1 received' "$ip_work/mtu.log" || { echo "IPv$version: nothing of $ip_small_mtu bytes gets through"; return 1; }
  done
  echo "IPv4 and IPv6 have learnt $ip_small_mtu, and use it"
}

# serve SIDE PORT COMMAND...: starts a server, waits until it listens. Sets server_pid.
serve() {
  local side=$1 port=$2
  shift 2
  ip netns exec "$ip_name-$side" "$@" >"$ip_work/server.log" 2>&1 </dev/null &
  server_pid=$!
  ip_wait "the server '$1'" listens "$side" "$port"
}
listens() { ip netns exec "$ip_name-$1" ss -Hltn "sport = :$2" | grep -q .; }
end_server() {
  kill "$server_pid" 2>/dev/null || true
  wait "$server_pid" 2>/dev/null || true
}

step_iperf3() {
  local way text="" rate bytes
  for way in "" -R; do
    serve b 5201 iperf3 -s -1
    timeout $((seconds + ip_limit)) ip netns exec "$ip_name-a" iperf3 -c 10.77.0.2 -t "$seconds" -J $way \
      >"$ip_work/iperf3.json" 2>"$ip_work/iperf3.log" || { end_server; echo "iperf3 $way: $(iperf3_error)"; return 1; }
    end_server
    read -r rate bytes < <("$py" -c '
import json, sys
end = json.load(open(sys.argv[1]))["end"]["sum_received"]
print(round(end["bits_per_second"] / 1e6), int(end["bytes"]))' "$ip_work/iperf3.json")
    [ "$bytes" -gt 0 ] || { echo "iperf3 $way: nothing was received"; return 1; }
    text+="${text:+, }$rate Mbit/s $([ -z "$way" ] && echo there || echo back)"
  done
  echo "$text"
}
iperf3_error() { sed -n 's/.*"error": *"\(.*\)".*/\1/p' "$ip_work/iperf3.json" | tail -n 1; }

# make_file NAME MIB FAULTS: random bytes, an eighth of that where faults slow everything down.
make_file() {
  local bytes=$(($2 << 20))
  [ "$3" = none ] || bytes=$((bytes / 8))
  mkdir -p "$ip_work/www"
  head -c $bytes /dev/urandom >"$ip_work/www/$1"
}
# sum FILE: what it has, as a number.
sum() { sha256sum "$1" | cut -d' ' -f1; }

# same NAME FILE: says so, or what differs.
same() {
  local want got
  want=$(sum "$ip_work/www/$1") got=$(sum "$2")
  [ "$want" = "$got" ] || { echo "$1 came as other bytes: $(stat -c %s "$2") of $(stat -c %s "$ip_work/www/$1")"; return 1; }
  echo "$(stat -c %s "$2") bytes, sha256 ${got:0:16}"
}

# fetch ADDRESS NAME CURL_OPTION...: over HTTP into ip_work/got.
fetch() {
  local address=$1 name=$2
  shift 2
  rm -f "$ip_work/got"
  timeout $ip_limit ip netns exec "$ip_name-a" curl -g -sS -f "$@" -o "$ip_work/got" "http://$address:8000/$name" 2>"$ip_work/curl.log"
}

# web ADDRESS FAULTS: a file by HTTP, and its bytes are right.
web() {
  local code=0
  make_file web 8 "$2"
  serve b 8000 "$py" -m http.server --directory "$ip_work/www" 8000 --bind ::
  fetch "$1" web || { code=$?; echo "curl ended with $code: $(tail -n 1 "$ip_work/curl.log")"; }
  end_server
  [ $code -eq 0 ] && same web "$ip_work/got"
}
step_web() { web 10.77.0.2 "$1"; }
step_web6() { web '[fd77::2]' "$1"; }

# A server with a key of its own and one user's key, which sees a home of its own.
step_ssh() {
  local code=0 home=$ip_work/home user
  user=$(id -un)
  make_file ssh 4 "$1"
  if [ ! -d "$home" ]; then
    mkdir "$home" && mkdir "$home/.ssh"
    chmod 700 "$home" "$home/.ssh"
    ssh-keygen -q -t ed25519 -N '' -C '' -f "$ip_work/key"
    cp "$ip_work/key.pub" "$home/.ssh/authorized_keys"
    dropbearkey -t ed25519 -f "$ip_work/host" >"$ip_work/host.log" 2>&1
    sed -n 's/^\(ssh-ed25519 [^ ]*\).*/10.77.0.2 \1/p' "$ip_work/host.log" >"$ip_work/known"
  fi
  # shellcheck disable=SC2016 # for the inner shell, whose mounts are of its namespace alone
  serve b 22 sh -c 'mount --bind "$0" "$1" && exec dropbear -F -E -s -r "$2" -p 10.77.0.2:22' \
    "$home" "$(getent passwd "$user" | cut -d: -f6)" "$ip_work/host"
  timeout $ip_limit ip netns exec "$ip_name-a" ssh -F /dev/null -i "$ip_work/key" -o BatchMode=yes \
    -o "UserKnownHostsFile=$ip_work/known" -o StrictHostKeyChecking=yes -o IdentitiesOnly=yes "$user@10.77.0.2" cat \
    <"$ip_work/www/ssh" >"$ip_work/got" 2>"$ip_work/ssh.log" || { code=$?; echo "ssh ended with $code: $(tail -n 1 "$ip_work/ssh.log")"; }
  end_server
  [ $code -eq 0 ] && echo "there and back: $(same ssh "$ip_work/got")" && same ssh "$ip_work/got" >/dev/null
}

# A card is reset while a transfer is under way, which goes on; then the other one, in another.
step_reset() {
  local side code=0
  make_file reset 12 "$1"
  serve b 8000 "$py" -m http.server --directory "$ip_work/www" 8000 --bind ::
  for side in a b; do
    reset_in_transfer $side || { code=1; break; }
  done
  end_server
  [ $code -eq 0 ] && echo "both cards, each in a transfer: $(same reset "$ip_work/got")"
}

# reset_in_transfer SIDE: once an eighth has come, and before all has.
reset_in_transfer() {
  local pid code=0 size
  size=$(stat -c %s "$ip_work/www/reset")
  fetch 10.77.0.2 reset --limit-rate $((size / 4)) & # at least four seconds
  pid=$!
  while [ "$(stat -c %s "$ip_work/got" 2>/dev/null || echo 0)" -lt $((size / 8)) ] && kill -0 $pid 2>/dev/null; do sleep 0.05; done
  kill -0 $pid 2>/dev/null || code=1
  ip_reset "$1" || { code=1; echo "the card of $ip_name-$1 was not reset: $(tail -n 1 "$ip_work/reset.log")"; }
  wait $pid || { echo "side $1: curl ended with $?: $(tail -n 1 "$ip_work/curl.log")"; return 1; }
  [ $code -eq 0 ] || { echo "side $1: the transfer was over before the card was reset"; return 1; }
  same reset "$ip_work/got" >"$ip_work/same.log" || { echo "side $1: $(cat "$ip_work/same.log")"; return 1; }
}
